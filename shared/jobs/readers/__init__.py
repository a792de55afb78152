"""What turns a job of any form into a JobSpec: the edge where other schemas end."""
