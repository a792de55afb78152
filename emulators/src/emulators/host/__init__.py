"""A host for Azure Functions apps (Python v2 model): HTTP, queue, timer and Event Grid triggers on one machine.

The host is independent of any app: `python -m emulators.host --config FILE` loads the folder in the configuration. An
app with these triggers behaves as in Azure. The host refuses unsupported features at start.
"""
