"""All messages of the system: which there are, what becomes of those that fail, and how they are given back."""
