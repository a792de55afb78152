"""The app registration for TRAINYARD_AUTH=entra: app roles, one scope, no secret. Made once, mended every time."""

from __future__ import annotations

import uuid
from typing import Any

from tools import az, deployer, patiently, rest, say, setting

MADE_HERE = "TRAINYARD_ENTRA_MADE_HERE"  # in azd's environment: the client id of the registration that we made
READER, CONTRIBUTOR, CODER = "trainyard.reader", "trainyard.contributor", "trainyard.coder"
AZURE_CLI = "04b07795-8ddb-461a-bbee-02f9e1bf7b46"  # the same in every tenant; lets `az login` be a sign-in here
NAMESPACE = uuid.UUID("0f7b7c1e-5a0e-4a3c-9d53-6c1f0a3c9b11")  # ids of roles must stay the same for ever


def ensure() -> str:
    """Make the registration what it should be, and return its client id."""
    graph = _graph()
    name = f"Trainyard ({setting('AZURE_ENV_NAME')})"
    found = az("ad", "app", "list", "--display-name", name)
    exact = [app for app in found if app["displayName"] == name]
    app = exact[0] if exact else az("ad", "app", "create", "--display-name", name, "--sign-in-audience", "AzureADMyOrg")
    client = str(app["appId"])
    say(f"App registration {name}: {client}")
    address = f"{graph}/applications(appId='{client}')"
    patiently(lambda: rest("patch", address, registration(client)))
    rest("patch", address, {"api": {**api(), "preAuthorizedApplications": [may_ask(AZURE_CLI)]}})
    principal = service_principal(client)
    needed = {"appRoleAssignmentRequired": True}
    patiently(lambda: rest("patch", f"{graph}/servicePrincipals/{principal}", needed))
    assign(graph, principal, deployer()[0])
    return client


def let_browsers_in(client: str, api: str) -> None:
    """Let people sign in with a browser, for the page: App Service gets an id token at its address, and no secret."""
    web = {"redirectUris": [callback(api)], "implicitGrantSettings": {"enableIdTokenIssuance": True}}
    rest("patch", f"{_graph()}/applications(appId='{client}')", {"web": web})


def callback(api: str) -> str:
    """Where App Service takes the answer of a browser's sign-in."""
    return f"{api.removesuffix('/api')}/.auth/login/aad/callback"


def _graph() -> str:
    return str(az("cloud", "show")["endpoints"]["microsoftGraphResourceId"]).rstrip("/") + "/v1.0"


def registration(client: str) -> dict[str, Any]:
    return {
        "identifierUris": [f"api://{client}"],
        "appRoles": [
            role(READER, "Trainyard reader", "Looks at drops, runs, logs and clusters."),
            role(CONTRIBUTOR, "Trainyard contributor", "Submits and cancels runs and pauses clusters, and may read."),
            role(CODER, "Trainyard coder", "Runs code of their own, and may do what a contributor may."),
        ],
        "api": api(),
    }


def role(value: str, name: str, description: str) -> dict[str, Any]:
    return {
        "id": stable_id(value),
        "value": value,
        "displayName": name,
        "description": description,
        "allowedMemberTypes": ["User", "Application"],
        "isEnabled": True,
    }


def api() -> dict[str, Any]:
    words = "Call Trainyard as the signed-in user."
    scope = {
        "id": stable_id("user_impersonation"),
        "value": "user_impersonation",
        "type": "User",
        "isEnabled": True,
        "adminConsentDisplayName": words,
        "adminConsentDescription": words,
        "userConsentDisplayName": words,
        "userConsentDescription": words,
    }
    return {"requestedAccessTokenVersion": 2, "oauth2PermissionScopes": [scope]}


def may_ask(client: str) -> dict[str, Any]:
    return {"appId": client, "delegatedPermissionIds": [stable_id("user_impersonation")]}


def service_principal(client: str) -> str:
    found = az("ad", "sp", "list", "--filter", f"appId eq '{client}'")
    return str((found or [az("ad", "sp", "create", "--id", client)])[0]["id"])


def assign(graph: str, principal: str, who: str) -> None:
    """Whoever deploys becomes a coder, unless they are one."""
    wanted = stable_id(CODER)
    there = rest("get", f"{graph}/servicePrincipals/{principal}/appRoleAssignedTo")["value"]
    if not any(one["principalId"] == who and one["appRoleId"] == wanted for one in there):
        grant = {"principalId": who, "resourceId": principal, "appRoleId": wanted}
        rest("post", f"{graph}/servicePrincipals/{principal}/appRoleAssignedTo", grant)


def stable_id(word: str) -> str:
    return str(uuid.uuid5(NAMESPACE, word))
