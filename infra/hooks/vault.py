"""A deleted key vault keeps its name for days. `azd down --purge` frees it; without --purge, this does."""

from __future__ import annotations

import names
from tools import HookFailed, missing, rest, say, setting, wait_until

API_VERSION = "2023-07-01"
PATIENCE_SECONDS = 600.0


def free_name() -> None:
    """Purge the deleted vault of this environment, if there is one. Only Azure ML used it; it held nothing of ours."""
    place = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/providers/Microsoft.KeyVault/locations"
    address = f"{place}/{setting('AZURE_LOCATION')}/deletedVaults/{names.vault()}"
    if not _deleted(address):
        return
    say(f"Purging the deleted key vault {names.vault()}, whose name would else stay taken")
    rest("post", f"{address}/purge?api-version={API_VERSION}")
    wait_until(lambda: not _deleted(address), PATIENCE_SECONDS, f"the end of key vault {names.vault()}")


def _deleted(address: str) -> bool:
    try:
        rest("get", f"{address}?api-version={API_VERSION}")
    except HookFailed as exc:
        if missing(exc):
            return False
        raise
    return True
