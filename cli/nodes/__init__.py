"""What is tried on nodes: taking them away, and the checks after a deployment."""
