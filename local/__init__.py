"""The local cloud on one machine: storage account, Event Grid, Functions host and Azure ML control plane."""
