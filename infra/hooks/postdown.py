"""After `azd down`: remove what subscription.bicep made, the budget and the custom role. Those that are gone are fine."""

from __future__ import annotations

from tools import HookFailed, rest, run, say, setting


def main() -> None:
    scope = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/providers"
    remove(
        "budget", f"{scope}/Microsoft.Consumption/budgets/trainyard-{setting('AZURE_ENV_NAME')}?api-version=2023-11-01"
    )
    if role := setting("TRAINYARD_CLUSTER_ROLE_ID", ""):
        remove("custom role", f"{scope}/Microsoft.Authorization/roleDefinitions/{role}?api-version=2022-04-01")


def remove(what: str, address: str) -> None:
    try:
        rest("delete", address)
    except HookFailed as exc:
        if "NotFound" not in str(exc) and "could not be found" not in str(exc):
            raise
    say(f"The {what} is gone")


if __name__ == "__main__":
    run(main)
