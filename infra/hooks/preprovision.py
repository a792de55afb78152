"""Before `azd provision`: preflight, the custom role and the budget, the topic that the storage account may have
already, and with TRAINYARD_AUTH=entra the app registration.
"""

from __future__ import annotations

from datetime import UTC, datetime

import names
import preflight
import registration
import vault
from tools import INFRA, HookFailed, az_here, listed, missing, remember, rest, run, say, setting

# azure.yaml names it as the service's folder; the predeploy hook fills it, but azd may look for it before.
PACKAGE = INFRA.parent / ".trainyard" / "package" / "app"


def main() -> None:
    PACKAGE.mkdir(parents=True, exist_ok=True)
    preflight.check()
    vault.free_name()
    remember("TRAINYARD_CLUSTER_ROLE_ID", subscription_parts())
    remember("TRAINYARD_STORAGE_TOPIC", storage_topic())
    if setting("TRAINYARD_AUTH", "keys") == "entra":
        register()


def register() -> None:
    """Create or update the app registration, unless TRAINYARD_ENTRA_CLIENT_ID names one from elsewhere.

    The principal of a pipeline has no rights on Microsoft Graph, and so can neither create nor update a registration.
    """
    given = setting("TRAINYARD_ENTRA_CLIENT_ID", "")
    if given and given != setting(registration.MADE_HERE, ""):
        say(f"TRAINYARD_ENTRA_CLIENT_ID is set: the app registration {given} is used as it is")
        return
    client = registration.ensure()
    remember("TRAINYARD_ENTRA_CLIENT_ID", client)
    remember(registration.MADE_HERE, client)


def storage_topic() -> str:
    """Return the name of the storage account's system topic if someone else created it, otherwise ''.

    The malware scan of Defender creates a system topic, and Azure allows one topic for each account
    (microsoft/AzureTRE#4978). For '', main.bicep creates a topic of its own.
    """
    ours = f"/{names.storage_account()}".lower()
    address = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/resourceGroups/{names.group()}/providers"
    try:
        topics = listed(f"{address}/Microsoft.EventGrid/systemTopics?api-version=2025-02-15")
    except HookFailed as exc:
        if missing(exc):  # there is no resource group yet
            return ""
        raise
    of_account = [topic["name"] for topic in topics if str(topic["properties"]["source"]).lower().endswith(ours)]
    others = [str(name) for name in of_account if name != names.storage_topic()]
    if others:
        say(f"The storage account has the system topic {others[0]} already, and may have only one: it is used")
    return others[0] if others else ""


def subscription_parts() -> str:
    """Deploy subscription.bicep and return the id of the custom role. Deploy without a budget if Azure refuses it."""
    start = datetime.now(UTC).strftime("%Y-%m-01")
    remove_budget_of_another_month(start)
    say("Deploying the custom role and the budget")
    try:
        return deployed_role(start, setting("TRAINYARD_MONTHLY_BUDGET", "100"))
    except HookFailed as exc:
        role = deployed_role(start, "0")  # raises if it was not the budget
        say(
            f"Azure refused the budget, so nothing warns of this deployment's bill yet. {exc}\n"
            "New subscriptions wait up to 48 hours for Cost Management, and some offers never get it. Run azd "
            "provision again later, or set TRAINYARD_MONTHLY_BUDGET to 0 to go without a budget."
        )
        return role


def deployed_role(start: str, budget: str) -> str:
    name = setting("AZURE_ENV_NAME")
    done = az_here(
        *("deployment", "sub", "create", "--name", f"trainyard-{name}", "--location", setting("AZURE_LOCATION")),
        *("--template-file", str(INFRA / "subscription.bicep"), "--parameters"),
        *(f"environmentName={name}", f"budgetStart={start}", f"monthlyBudget={budget}"),
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
        if not missing(exc):
            say(f"Whether there is a budget can't be found out. {exc}")
        return
    if not began.startswith(start):
        rest("delete", address)


if __name__ == "__main__":
    run(main)
