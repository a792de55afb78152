"""After `azd down`: remove the budget and the custom role that subscription.bicep made, and free the key vault's name.

azd has forgotten the template's outputs by now, so nothing here reads one.
"""

from __future__ import annotations

import os
import time

import vault
from tools import PAUSE_SECONDS, HookFailed, missing, rest, run, say, setting

IN_USE = "RoleDefinitionHasAssignments"  # https://learn.microsoft.com/azure/role-based-access-control/troubleshooting
ROLE_SECONDS = float(os.environ.get("TRAINYARD_ROLES_SECONDS", "300"))  # tests have less patience


def main() -> None:
    scope, name = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/providers", setting("AZURE_ENV_NAME")
    remove("budget", f"{scope}/Microsoft.Consumption/budgets/trainyard-{name}?api-version=2023-11-01")
    if role := setting("TRAINYARD_CLUSTER_ROLE_ID", ""):
        remove_role(f"{scope}/Microsoft.Authorization/roleDefinitions/{role}?api-version=2022-04-01")
    vault.free_name()


def remove_role(address: str) -> None:
    """Delete the custom role. Azure refuses while role assignments of the resource group are left, so retry."""
    deadline = time.monotonic() + ROLE_SECONDS
    while True:
        try:
            return remove("custom role", address)
        except HookFailed as exc:
            if IN_USE not in str(exc):
                raise
            if time.monotonic() > deadline:
                say(
                    f"The custom role is still assigned, so it stays. Remove it later: az rest -m delete -u '{address}'"
                )
                return None
        time.sleep(PAUSE_SECONDS)


def remove(what: str, address: str) -> None:
    try:
        rest("delete", address)
    except HookFailed as exc:
        if not missing(exc):
            raise
    say(f"The {what} is gone")


if __name__ == "__main__":
    run(main)
