"""Before `azd provision`: preflight, the custom role and the budget, and with TRAINYARD_AUTH=entra the registration."""

from __future__ import annotations

from datetime import UTC, datetime

import preflight
import registration
import vault
from tools import INFRA, HookFailed, az_here, missing, remember, rest, run, say, setting

# azure.yaml names it as the service's folder; the predeploy hook fills it, but azd may look for it before.
PACKAGE = INFRA.parent / ".trainyard" / "package" / "app"


def main() -> None:
    PACKAGE.mkdir(parents=True, exist_ok=True)
    preflight.check()
    vault.free_name()
    remember("TRAINYARD_CLUSTER_ROLE_ID", subscription_parts())
    if setting("TRAINYARD_AUTH", "keys") == "entra":
        remember("TRAINYARD_ENTRA_CLIENT_ID", registration.ensure())


def subscription_parts() -> str:
    """Deploy subscription.bicep; returns the custom role's id."""
    name, location = setting("AZURE_ENV_NAME"), setting("AZURE_LOCATION")
    start = datetime.now(UTC).strftime("%Y-%m-01")
    remove_budget_of_another_month(start)
    say("Deploying the custom role and the budget")
    done = az_here(
        *("deployment", "sub", "create", "--name", f"trainyard-{name}", "--location", location),
        *("--template-file", str(INFRA / "subscription.bicep"), "--parameters"),
        *(f"environmentName={name}", f"budgetStart={start}"),
        *(f"monthlyBudget={setting('TRAINYARD_MONTHLY_BUDGET', '100')}",),
        *(f"alertEmail={setting('TRAINYARD_ALERT_EMAIL', '')}",),
    )
    return str(done["properties"]["outputs"]["clusterRoleId"]["value"])


def remove_budget_of_another_month(start: str) -> None:
    """A budget's start can't be changed, and one that begins in an earlier month can't be sent: Azure refuses both.

    "Start date of budgets cannot be updated. Please delete and create a new budget" (Azure/bicep#7149), and "start date
    must be within the current timegrain period" (Azure/azure-quickstart-templates#7095). So one that began in another
    month is made anew. It counts by the month, so nothing is lost but the list of its alerts.
    """
    scope = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/providers/Microsoft.Consumption"
    address = f"{scope}/budgets/trainyard-{setting('AZURE_ENV_NAME')}?api-version=2023-11-01"
    try:
        began = str(rest("get", address)["properties"]["timePeriod"]["startDate"])
    except HookFailed as exc:
        if missing(exc):
            return
        raise
    if not began.startswith(start):
        rest("delete", address)


if __name__ == "__main__":
    run(main)
