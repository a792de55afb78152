"""Features of Azure ML that this emulator lacks. Requests for them are refused with the feature's name and an
alternative. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

NO_SERVING = "nothing is served here; download the model and load it where it is needed"
NO_NETWORK = "this machine has no networks of Azure's"
NO_NOTEBOOKS = "run Jupyter on this machine; `azure-emulators env` prints what it needs"
ONLY_CLUSTERS = "only AmlCompute is here, which starts and stops its nodes itself; change its scaleSettings"
FEATURES = "feature stores are not here; read features as data"
NO_KEYS = "there are no keys but the storage account's; datastores' listSecrets gives it"
WRITTEN = "put the asset's file into the folder of the registry, or register it in the workspace"
REFUSED: Mapping[str, tuple[str, str]] = {
    "batchEndpoints": ("Batch endpoints", "submit a command job that reads the data and writes what it predicts"),
    "onlineEndpoints": ("Online endpoints", NO_SERVING),
    "serverlessEndpoints": ("Serverless endpoints", NO_SERVING),
    "endpoints": ("Endpoints", NO_SERVING),
    "marketplaceSubscriptions": ("Marketplace subscriptions", "nothing can be bought here"),
    "featuresets": ("Feature sets", FEATURES),
    "featurestoreEntities": ("Feature store entities", FEATURES),
    "schedules": ("Schedules", "submit the job from cron, or from a timer of a Functions app"),
    "publish": ("Publishing to a registry", WRITTEN),
    "package": ("Packages of models", NO_SERVING),
    "registries": ("Writing to registries", WRITTEN),
    "deploymentTemplates": ("Deployment templates", NO_SERVING),
    "genericasset": ("Indexes", "register the folder as data"),
    "indexes": ("Indexes", "register the folder as data"),
    "connections": ("Connections", "give the job what it needs in its environment variables"),
    "capabilityHosts": ("Capability hosts", "agents are not here"),
    "virtualClusters": ("Virtual clusters", "submit to a cluster of the workspace"),
    "outboundRules": ("Outbound rules", NO_NETWORK),
    "outboundNetworkDependenciesEndpoints": ("Outbound dependencies", NO_NETWORK),
    "provisionManagedNetwork": ("A managed network", NO_NETWORK),
    "privateEndpointConnections": ("Private endpoint connections", NO_NETWORK),
    "privateLinkResources": ("Private link resources", NO_NETWORK),
    "diagnose": ("Diagnosis of a workspace", "the folder logs/ beside the state tells what happened"),
    "listKeys": ("Keys of a workspace", NO_KEYS),
    "resyncKeys": ("Keys of a workspace", NO_KEYS),
    "listStorageAccountKeys": ("Keys of a workspace", NO_KEYS),
    "listNotebookAccessToken": ("Notebooks", NO_NOTEBOOKS),
    "listNotebookKeys": ("Notebooks", NO_NOTEBOOKS),
    "prepareNotebook": ("Notebooks", NO_NOTEBOOKS),
    "restart": ("Restarting a compute", ONLY_CLUSTERS),
    "enableSso": ("Single sign-on of a compute", ONLY_CLUSTERS),
    "usages": ("Usages", "nothing is metered here"),
    "quotas": ("Quotas", "a cluster may have as many nodes as it says; all of them are this machine"),
    "updateQuotas": ("Quotas", "a cluster may have as many nodes as it says; all of them are this machine"),
    "vmSizes": ("Sizes of machines", "any vmSize is taken; all nodes are this machine"),
    "operations": ("The provider's operations", "the role definitions in Microsoft's documentation list them"),
    "deployments": ("Deployments of templates", "there is one workspace, which the configuration names"),
    "workspaces": ("Changing workspaces", "there is one workspace, which the configuration names"),
}
_BY_LOWER = {name.lower(): said for name, said in REFUSED.items()}


def why(path: str) -> str | None:
    """Return the reason for refusing a path, by its first collection or action in the table, or None without an
    entry."""
    parts = [part.lower() for part in path.split("/") if part]
    below = parts[parts.index("providers") + 2 :] if "providers" in parts[:-1] else []
    if parts[:1] == ["genericasset"]:
        below = parts[:1]
    kinds = below[0::2]  # the rest are names
    if kinds[:1] == ["workspaces"] and len(kinds) > 1:
        kinds = kinds[1:]
    if kinds[:1] == ["locations"]:
        kinds = kinds[1:]
    for kind in kinds:
        if kind in _BY_LOWER:
            what, instead = _BY_LOWER[kind]
            return f"{what}: not in this stand-in; {instead}."
    return None
