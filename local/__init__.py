"""The one-machine cloud: Azurite, Event Grid, the Functions host and the Azure ML control plane."""
