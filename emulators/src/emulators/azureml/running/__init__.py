"""Jobs on this machine: their folders, processes, variables and logs."""
