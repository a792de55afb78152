"""Before `azd down`: delete the workspace for good. A soft-deleted one holds its name for 14 days; azd lets it be."""

from __future__ import annotations

from tools import HookFailed, missing, rest, run, say, setting, wait_until

API_VERSION = "2024-04-01"
PATIENCE_SECONDS = 900.0


def main() -> None:
    if not (name := setting("AZURE_WORKSPACE_NAME", "")):
        say("There is no workspace to delete: nothing was provisioned.")
        return
    group = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/resourceGroups/{setting('AZURE_RESOURCE_GROUP')}"
    address = f"{group}/providers/Microsoft.MachineLearningServices/workspaces/{name}?api-version={API_VERSION}"
    if not exists(address):
        return
    say(f"Deleting the workspace {name} for good")
    rest("delete", f"{address}&forceToPurge=true")
    wait_until(lambda: not exists(address), PATIENCE_SECONDS, f"the end of workspace {name}")


def exists(address: str) -> bool:
    try:
        rest("get", address)
    except HookFailed as exc:
        if missing(exc):
            return False
        raise
    return True


if __name__ == "__main__":
    run(main)
