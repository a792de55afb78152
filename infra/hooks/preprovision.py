"""Before `azd provision`: preflight, the custom role and the budget, and with TRAINYARD_AUTH=entra the registration."""

from __future__ import annotations

from datetime import UTC, datetime

import preflight
import registration
from tools import INFRA, az, remember, run, say, setting

# azure.yaml names it as the service's folder; the predeploy hook fills it, but azd may look for it before.
PACKAGE = INFRA.parent / ".trainyard" / "package" / "app"


def main() -> None:
    PACKAGE.mkdir(parents=True, exist_ok=True)
    preflight.check()
    remember("TRAINYARD_CLUSTER_ROLE_ID", subscription_parts())
    if setting("TRAINYARD_AUTH", "keys") == "entra":
        remember("TRAINYARD_ENTRA_CLIENT_ID", registration.ensure())


def subscription_parts() -> str:
    """Deploy subscription.bicep; returns the custom role's id. The budget keeps the month in which it was made."""
    name, location = setting("AZURE_ENV_NAME"), setting("AZURE_LOCATION")
    start = setting("TRAINYARD_BUDGET_START", datetime.now(UTC).strftime("%Y-%m-01"))
    remember("TRAINYARD_BUDGET_START", start)
    say("Deploying the custom role and the budget")
    done = az(
        *("deployment", "sub", "create", "--name", f"trainyard-{name}", "--location", location),
        *("--subscription", setting("AZURE_SUBSCRIPTION_ID")),
        *("--template-file", str(INFRA / "subscription.bicep"), "--parameters"),
        *(f"environmentName={name}", f"budgetStart={start}"),
        *(f"monthlyBudget={setting('TRAINYARD_MONTHLY_BUDGET', '100')}",),
        *(f"alertEmail={setting('TRAINYARD_ALERT_EMAIL', '')}",),
    )
    return str(done["properties"]["outputs"]["clusterRoleId"]["value"])


if __name__ == "__main__":
    run(main)
