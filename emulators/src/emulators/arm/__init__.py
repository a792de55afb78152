"""A resource provider for one machine. It reads Bicep, evaluates the declared resources, and derives their
permissions and events.

    deployment = deploy(Path("infra/main.bicep"), {"environmentName": "local", "location": "local"})
    deployment.of("Microsoft.Storage/storageAccounts/queueServices/queues")

No Bicep compiler is needed, and nothing is made: `declared` turns a deployment into the configuration of the other
emulators, `access` answers who may do what, and `refusals` says what Azure would refuse. It takes the part of the
language that plain templates use (syntax.py says which); anything else is an error with its file and line, never a
guess.
"""
