"""The choice of a deployment and its login, and the setup of the shell and of this machine."""
