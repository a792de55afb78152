"""Which Trainyard is spoken to, as whom, and how the shell and the machine are set up for it."""
