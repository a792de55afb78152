"""A resource provider for one machine. It reads Bicep, evaluates the declared resources, and derives their
permissions and events.

    deployment = deploy(Path("infra/main.bicep"), {"environmentName": "local", "location": "local"})
    deployment.of("Microsoft.Storage/storageAccounts/queueServices/queues")

No Bicep compiler is needed, and nothing is created. `declared` turns a deployment into the configuration of the other
emulators, `access` checks permissions, and `refusals` lists what Azure would refuse. Only the part of the language that
plain templates use is supported (syntax.py lists it). Anything else is an error with file and line, never a guess.
"""
