"""After `azd down`: remove the budget and the custom role that subscription.bicep made, and free the key vault's name.

azd has forgotten the template's outputs by now, so nothing here reads one.
"""

from __future__ import annotations

import vault
from tools import HookFailed, missing, rest, run, say, setting


def main() -> None:
    scope, name = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/providers", setting("AZURE_ENV_NAME")
    remove("budget", f"{scope}/Microsoft.Consumption/budgets/trainyard-{name}?api-version=2023-11-01")
    if role := setting("TRAINYARD_CLUSTER_ROLE_ID", ""):
        remove("custom role", f"{scope}/Microsoft.Authorization/roleDefinitions/{role}?api-version=2022-04-01")
    vault.free_name()


def remove(what: str, address: str) -> None:
    try:
        rest("delete", address)
    except HookFailed as exc:
        if not missing(exc):
            raise
    say(f"The {what} is gone")


if __name__ == "__main__":
    run(main)
