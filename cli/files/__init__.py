"""Files of this machine that commands send or write: folders, job files, drops and clusters files."""
