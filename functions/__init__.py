"""One blueprint per trigger family. A handler decodes, makes one call, and encodes."""
