"""Tools for programs that search on their own: the Model Context Protocol over the declared API operations."""
