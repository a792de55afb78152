"""What turns a job of any form into a JobSpec, and what Azure ML says into our words: the edge where schemas end."""
