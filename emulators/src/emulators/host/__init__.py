"""A host for Azure Functions apps (Python v2 model): HTTP, queue, timer and Event Grid triggers on one machine.

It imports no app: `python -m emulators.host --config FILE` loads the folder that the configuration names. What an app
on these triggers can observe is as in Azure; what the host does not support it refuses at start.
"""
