"""The content of infra/, evaluated for the local cloud. Azure is deployed from the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emulators.arm import declared
from emulators.arm.access import Access
from emulators.arm.deploy import Deployment, deploy
from emulators.arm.refusals import refusals
from emulators.arm.syntax import BicepError
from emulators.process import PartFailed

ENVIRONMENT = {"environmentName": "local", "location": "local"}
# nothing costs money here, but the template requires a month
BUDGET = {"environmentName": "local", "budgetStart": "2026-01-01"}
# Settings with the addresses of Azure's services; the parts of the local cloud set their own.
OF_AZURE = (
    "AzureWebJobsStorage",
    "APPLICATIONINSIGHTS_",
    "AZURE_CLIENT_ID",
    "AZURE_AUTHORITY_HOST",
    "AML_",
    "TRAINYARD_TOPIC_",
    "TRAINYARD_PRICES_URL",
    "TRAINYARD_SIGNING_KEY",
)


class Declaration:
    """The deployment of `folder`/main.bicep. Raises PartFailed if Azure would refuse the deployment, or would lose
    events with it."""

    def __init__(self, folder: Path) -> None:
        try:
            role = deploy(folder / "subscription.bicep", BUDGET)
            parameters = {**ENVIRONMENT, "clusterRoleId": role.outputs["clusterRoleId"]}
            self.deployment: Deployment = deploy(folder / "main.bicep", parameters)
            self.access = Access(self.deployment, role)
            declared.check_delivery(self.deployment, self.access)
            if refused := [*refusals(role), *refusals(self.deployment)]:
                raise declared.DeploymentFailed("\n".join(refused))
        except (BicepError, OSError) as exc:
            raise PartFailed(f"{folder} can't be deployed:\n{exc}") from exc

    @property
    def storage(self) -> declared.Storage:
        return declared.storage(self.deployment)

    @property
    def cors(self) -> list[dict[str, Any]]:
        return declared.cors(self.deployment)

    @property
    def workspace(self) -> dict[str, str]:
        """Return the workspace's resource id, in the format of the Azure ML emulator's configuration."""
        found = self.deployment.one(declared.WORKSPACES)
        group = found.id.split("/")[4]
        return {
            "subscription_id": self.deployment.subscription,
            "resource_group": group,
            "workspace": found.name,
            "location": str(found.body["location"]),
        }

    def topics(self, key: str) -> list[dict[str, Any]]:
        """Return the topics. Publishers to Trainyard's topic must show the key; in Azure they show an identity."""
        ours = self.own_topic
        return [topic | ({"key": key} if topic["name"] == ours else {}) for topic in declared.topics(self.deployment)]

    @property
    def subscriptions(self) -> list[dict[str, Any]]:
        return declared.subscriptions(self.deployment)

    @property
    def own_topic(self) -> str:
        return self.deployment.one(declared.TOPICS).name

    @property
    def workspace_topic(self) -> str:
        return self._topic_of(declared.WORKSPACES)

    @property
    def storage_topic(self) -> str:
        return self._topic_of(declared.ACCOUNT)

    def _topic_of(self, kind: str) -> str:
        source = self.deployment.one(kind).id
        return str(next(t["name"] for t in declared.topics(self.deployment) if t["resource"] == source))

    @property
    def datastores(self) -> dict[str, str]:
        return declared.datastores(self.deployment)

    def clusters(self, idle_seconds: float) -> list[dict[str, Any]]:
        """Return the clusters. Their idle nodes stop sooner than in Azure."""
        return [{**cluster, "idle_seconds": idle_seconds} for cluster in declared.clusters(self.deployment)]

    @property
    def workspace_roles(self) -> list[dict[str, Any]]:
        """Return the allowed actions of the app's identity in the workspace."""
        app = declared.principal(self.deployment, declared.identity(self.deployment, "id-app-"))
        workspace = self.deployment.one(declared.WORKSPACES).id
        roles = [grant.role for grant in self.access.reaching(app, workspace)]
        return [
            {"name": role.name, "actions": list(role.actions), "not_actions": list(role.not_actions)} for role in roles
        ]

    @property
    def nodes(self) -> dict[str, str]:
        """Return the identity of the clusters' nodes."""
        found = declared.identity(self.deployment, "id-nodes-")
        client_id = str(self.deployment.runtime(found, ("properties", "clientId")))
        return {"principal": declared.principal(self.deployment, found), "client_id": client_id}

    @property
    def table_grants(self) -> list[dict[str, Any]]:
        """Return the rights of the nodes' identity on tables, in the format of the storage emulator's
        configuration."""
        principal = self.nodes["principal"]
        return [
            {
                "principal": principal,
                "table": grant.scope.partition("/tables/")[2],
                "role": grant.role.name,
                "actions": list(grant.role.actions),
                "data_actions": list(grant.role.data_actions),
            }
            for grant in self.access.grants
            if grant.principal == principal and "/tableServices/" in grant.scope
        ]

    @property
    def app_settings(self) -> dict[str, str]:
        """Return the app's settings, without settings of Azure's addresses."""
        given = declared.app_settings(self.deployment)
        return {key: value for key, value in given.items() if not key.startswith(OF_AZURE)}
