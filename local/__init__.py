"""The one-machine cloud: storage account, Event Grid, the Functions host and the Azure ML control plane."""
