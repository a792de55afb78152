"""Bodies in the form of Microsoft's OpenAPI of Microsoft.MachineLearningServices and the run history. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from emulators.azureml.bodies.any_job import COMMAND, JOB_TYPES
from emulators.azureml.kernel.config import PROVIDER, Config
from emulators.azureml.kernel.identity import PRINCIPAL
from emulators.azureml.kernel.models import Asset, Cluster, Datastore, Job, Json, Node, NodeState, Shelf, Status
from emulators.tokens import TENANT

TRACKING = "/mlflow/v1.0"
NODES_PATH = "/nodes"
CREATED_BY = "azure-emulators"
SUCCEEDED = {"provisioningState": "Succeeded"}


def tracking_path(workspace_id: str) -> str:
    """Return the path of the workspace's MLflow below the control plane's URL."""
    return f"{TRACKING}{workspace_id}"


def metadata_address(service_url: str, node: str) -> str:
    """Return the URL of a node's metadata service. It replaces http://169.254.169.254, because all nodes here share
    one IP address."""
    return f"{service_url}{NODES_PATH}/{node}"


def error(code: str, message: str) -> Json:
    return {"error": {"code": code, "message": message}}


@dataclass(frozen=True)
class Wire:
    """Writes bodies for one workspace. `base` is this server's address, and `account` the storage account's name."""

    config: Config
    base: str
    account: str

    def _resource(self, path: str, properties: Json, created: str, registry: str = "") -> Json:
        """Return the envelope of a resource under the workspace, or in a registry, where ids are short.

        `path` is like `jobs/NAME` or `codes/NAME/versions/1`.
        """
        kinds, names = path.split("/")[::2], path.split("/")[1::2]
        return {
            "id": f"azureml://registries/{registry}/{path}" if registry else f"{self.config.workspace_id}/{path}",
            "name": names[-1],
            "type": f"{PROVIDER}/{'registries' if registry else 'workspaces'}/{'/'.join(kinds)}",
            "properties": properties,
            "systemData": _system_data(created),
        }

    def workspace(self, created: str) -> Json:
        group = f"/subscriptions/{self.config.subscription_id}/resourceGroups/{self.config.resource_group}/providers"
        return {
            "id": self.config.workspace_id,
            "name": self.config.workspace,
            "type": f"{PROVIDER}/workspaces",
            "location": self.config.location,
            "tags": {},
            "kind": "Default",
            "sku": {"name": "Basic", "tier": "Basic"},
            "identity": {"type": "SystemAssigned", "principalId": PRINCIPAL, "tenantId": TENANT},
            "properties": {
                "friendlyName": self.config.workspace,
                "workspaceId": self.config.workspace_guid,
                "storageAccount": f"{group}/Microsoft.Storage/storageAccounts/{self.account}",
                "keyVault": f"{group}/Microsoft.KeyVault/vaults/local",
                "applicationInsights": f"{group}/Microsoft.Insights/components/local",
                "discoveryUrl": f"{self.base}/discovery",
                "mlFlowTrackingUri": self.base + tracking_path(self.config.workspace_id),
                "provisioningState": "Succeeded",
                "publicNetworkAccess": "Enabled",
                "hbiWorkspace": False,
                "v1LegacyMode": False,
                "tenantId": TENANT,
            },
            "systemData": _system_data(created),
        }

    def datastore(self, datastore: Datastore, created: str) -> Json:
        """Return the body of a datastore. The SDK builds https://{accountName}.blob.{endpoint} from it. Our
        accountName ends in '#', so the rest is a fragment that every URL parser drops. The result is this
        server's own TLS front of the blobs, which needs no name resolution."""
        properties: Json = {
            "datastoreType": "AzureBlob",
            "accountName": f"{self.base.removeprefix('https://')}/{self.account}#",
            "containerName": datastore.container,
            "endpoint": "core.local",
            "protocol": "https",
            "credentials": {"credentialsType": "AccountKey", "secrets": {"secretsType": "AccountKey"}},
            "serviceDataAccessAuthIdentity": "None",
            "isDefault": datastore.is_default,
            "description": datastore.description,
            "tags": datastore.tags,
            "properties": datastore.properties,
        }
        return self._resource(f"datastores/{datastore.name}", properties, created)

    def cluster(self, cluster: Cluster, state: str = "Succeeded") -> Json:
        now = cluster.nodes
        counts = {f"{s.value}NodeCount": sum(n.state is s for n in now) for s in NodeState}
        inner = {
            **_without_default_address(cluster.properties["properties"]),
            "allocationState": "Steady" if cluster.settled else "Resizing",
            "allocationStateTransitionTime": cluster.settled_since or cluster.created,
            "errors": [{"error": each} for each in cluster.errors],
            "currentNodeCount": sum(n.state is not NodeState.PREPARING for n in now),
            "targetNodeCount": cluster.refused
            + sum(n.state not in (NodeState.LEAVING, NodeState.PREEMPTED) for n in now),
            "nodeStateCounts": {**counts, "unusableNodeCount": 0},
        }
        properties = {
            **cluster.properties,
            "properties": inner,
            "provisioningState": state,
            "provisioningErrors": None,
            "createdOn": cluster.created,
            "modifiedOn": cluster.modified,
            "isAttachedCompute": False,
            "computeLocation": cluster.location,
        }
        body = self._resource(f"computes/{cluster.name}", properties, cluster.created)
        identity = {"identity": cluster.identity} if cluster.identity else {}
        return {**body, "location": cluster.location, "tags": cluster.tags, **identity}

    def asset(self, asset: Asset, registry: str = "") -> Json:
        properties = {**asset.properties, **({} if asset.kind == "data" else SUCCEEDED)}
        if asset.kind == "environments":
            properties["environmentType"] = "UserCreated"
        path = f"{asset.kind}/{asset.name}/versions/{asset.version}"
        return self._resource(path, properties, asset.created, registry)

    def shelf(self, shelf: Shelf, newest: Asset | None, next_version: str, registry: str = "") -> Json:
        """Return the body of a name of asset versions, which Azure ML calls a container."""
        properties: Json = {
            **shelf.properties,
            "latestVersion": newest.version if newest else None,
            "nextVersion": next_version,
            **({} if shelf.kind == "data" else SUCCEEDED),
        }
        return self._resource(f"{shelf.kind}/{shelf.name}", properties, shelf.created, registry)

    def registry(self, name: str, created: str) -> Json:
        group = f"/subscriptions/{self.config.subscription_id}/resourceGroups/{self.config.resource_group}/providers"
        return {
            "id": f"{group}/{PROVIDER}/registries/{name}",
            "name": name,
            "type": f"{PROVIDER}/registries",
            "location": self.config.location,
            "tags": {},
            "properties": {
                "regionDetails": [{"location": self.config.location}],
                "discoveryUrl": f"{self.base}/registrymanagement/v1.0/registries/{name}/discovery",
                "mlFlowRegistryUri": f"{self.base}/mlflow/v1.0{group}/{PROVIDER}/registries/{name}",
                "publicNetworkAccess": "Disabled",
            },
            "systemData": _system_data(created),
        }

    def pending_upload(self, upload_id: str, blob_uri: str, sas_uri: str) -> Json:
        reference = self.blob_reference(blob_uri, sas_uri)
        return {"pendingUploadId": upload_id, "pendingUploadType": "TemporaryBlobReference", **reference}

    def blob_reference(self, blob_uri: str, sas_uri: str) -> Json:
        group = f"/subscriptions/{self.config.subscription_id}/resourceGroups/{self.config.resource_group}"
        return {
            "blobReferenceForConsumption": {
                "blobUri": blob_uri,
                "storageAccountArmId": f"{group}/providers/Microsoft.Storage/storageAccounts/{self.account}",
                "credential": {"credentialType": "SAS", "sasUri": sas_uri},
            },
        }

    def job(self, job: Job) -> Json:
        endpoint = self.base + tracking_path(self.config.workspace_id)
        studio = f"{self.base}/runs/{job.name}?wsid={self.config.workspace_id}"
        services = {
            "Tracking": {"jobServiceType": "Tracking", "port": None, "endpoint": endpoint},
            "Studio": {"jobServiceType": "Studio", "port": None, "endpoint": studio},
        }
        properties = {**job.properties, "status": job.status.value, "services": services}
        return self._resource(f"jobs/{job.name}", properties, job.created)

    def run_details(self, job: Job, log_urls: dict[str, str]) -> Json:
        """Return run history's view of a job, which `jobs.stream` and the portal read."""
        return {
            "runId": job.name,
            "parentRunId": job.parent,
            "status": job.status.value,
            "target": job.cluster,
            "startTimeUtc": job.started,
            "endTimeUtc": job.ended,
            "services": {},
            "warnings": [{"source": "scheduler", "message": job.waiting}] if job.waiting else [],
            "error": job.error,
            "tags": job.properties["tags"],
            "properties": {**job.properties["properties"], "attempt": str(job.attempt)},
            "inputs": {},
            "outputs": {},
            "logFiles": log_urls,
        }

    def run(self, job: Job) -> Json:
        """Return run history's record of a job, in the form for lists of children."""
        return {
            "runId": job.name,
            "parentRunId": job.parent,
            "runNumber": job.number,
            "runType": JOB_TYPES.get(job.kind, COMMAND).run_type,
            "displayName": job.properties["displayName"],
            "description": job.properties.get("description"),
            "experimentId": self.config.guid("experiments", job.experiment),
            "status": job.status.value,
            "createdUtc": job.created,
            "startTimeUtc": job.started,
            "endTimeUtc": job.ended,
            "error": job.error,
            "tags": job.properties["tags"],
            "properties": job.properties["properties"],
            "compute": {"target": job.cluster} if job.cluster else None,
            "hidden": bool(job.properties.get("isArchived")),
        }

    def run_data(self, job: Job, places: dict[str, Json]) -> Json:
        """Return run history's record of a run. After a success, the record has the data assets made from the named
        outputs."""
        done = job.status is Status.COMPLETED
        outputs = {name: self._output_asset(job.name, name, place["type"]) for name, place in places.items()}
        return {
            "runMetadata": {
                "runId": job.name,
                "status": job.status.value,
                "outputs": outputs if done else {},
                "tags": job.properties["tags"],
                "properties": job.properties["properties"],
            }
        }

    def _output_asset(self, job: str, output: str, kind: str) -> Json:
        """Return the id and type with which MLClient requests the location of an output.

        A model has the type of a folder: MLClient 1.35.2 fails on its own request for the addresses of models
        (BatchGetResolvedUrisDto has no `values`), so that not even the logs of such a job could be downloaded.
        """
        prefix = f"azureml://locations/{self.config.location}/workspaces/{self.config.workspace_guid}/data"
        kind = "uri_folder" if kind.endswith("_model") else kind
        return {"assetId": f"{prefix}/azureml_{job}_output_data_{output}/versions/1", "type": kind}


def node(node: Node) -> Json:
    body: Json = {
        "nodeId": node.id,
        "privateIpAddress": f"10.0.{node.number // 250}.{node.number % 250 + 4}",
        "port": 50000 + node.number % 10000,
        "nodeState": node.state.value,
    }
    return {**body, "runId": node.job} if node.job else body


def _system_data(created: str) -> Json:
    return {
        "createdAt": created,
        "createdBy": CREATED_BY,
        "createdByType": "Application",
        "lastModifiedAt": created,
        "lastModifiedBy": CREATED_BY,
        "lastModifiedByType": "Application",
    }


def _without_default_address(properties: Json) -> Json:
    """Return a cluster's properties without `enableNodePublicIp: true`, which is the default.

    MLClient reads any value of this key as network settings. Its begin_create_or_update then raises an AttributeError
    for a cluster that it has read, because the settings have no subnet (azure-ai-ml 1.35).
    """
    return {key: value for key, value in properties.items() if (key, value) != ("enableNodePublicIp", True)}
