"""The endpoint of a table, and the credential."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableClient

AZURE_HOST = re.compile(
    r"[a-z0-9]{3,24}(\.z\d+)?\.table\.(core\.windows\.net|core\.usgovcloudapi\.net|core\.chinacloudapi\.cn|storage\.azure\.net)"
)
LOCAL = ("127.0.0.1", "localhost", "::1")
AUTHORITIES = {"usgovcloudapi.net": "login.microsoftonline.us", "chinacloudapi.cn": "login.chinacloudapi.cn"}
EXPECTED = (
    "expected https://ACCOUNT.table.core.windows.net, http://127.0.0.1:PORT/devstoreaccount1 (Azurite), "
    "or connection-string with AZURE_STORAGE_CONNECTION_STRING set"
)
# Microsoft publishes this key for every Azurite; it protects nothing.
AZURITE = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def client_of(endpoint: str, environ: Mapping[str, str], table: str) -> Callable[[], TableClient]:
    """Return a function that creates clients of a table; client.connect describes the endpoints. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{2,62}", table):
        raise ValueError(f"table {table!r}: expected 3 to 63 letters and digits, a letter first")
    if table.lower() == "tables":
        raise ValueError("table 'tables' is the service's own name for the list of all tables; choose another")
    options: dict[str, Any] = {"table_name": table, "retry_total": 0}  # our own retries end at the deadline
    if endpoint in ("", "connection-string"):
        text = environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
        return lambda: _from_connection_string(text, options)
    url = urlsplit(endpoint)
    host, path = url.hostname or "", url.path.rstrip("/")
    if url.scheme == "https" and AZURE_HOST.fullmatch(url.netloc) and not path and not url.query:
        return lambda: TableClient(f"https://{host}", credential=_identity(host, environ), **options)
    if url.scheme == "https" and host in LOCAL and path == f"/{AZURITE}" and not url.query:
        address = f"https://{url.netloc.rpartition('@')[2]}{path}"
        return lambda: TableClient(address, credential=_identity(host, environ), **options)
    if url.scheme == "http" and host in LOCAL and path == f"/{AZURITE}" and not url.query:
        address = f"http://{url.netloc.rpartition('@')[2]}{path}"
        signature = environ.get("AZURE_STORAGE_SAS_TOKEN")  # the Azure CLI's name for it
        credential: Any = AzureSasCredential(signature) if signature else AzureNamedKeyCredential(AZURITE, AZURITE_KEY)
        return lambda: TableClient(address, credential=credential, **options)
    # Without the query and the user part, which may contain a secret.
    raise ValueError(f"endpoint {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}: {EXPECTED}")


def _from_connection_string(text: str, options: dict[str, Any]) -> TableClient:
    if not text:
        raise ValueError(f"AZURE_STORAGE_CONNECTION_STRING is not set, and no endpoint is given: {EXPECTED}")
    try:
        return TableClient.from_connection_string(text, **options)
    except ValueError:
        raise ValueError(
            "AZURE_STORAGE_CONNECTION_STRING cannot be read: expected NAME=VALUE;... with AccountName and AccountKey, "
            "or TableEndpoint and SharedAccessSignature, as the Azure portal shows it"
        ) from None


def _identity(host: str, environ: Mapping[str, str]) -> Any:
    from azure.identity import DefaultAzureCredential

    options = {}
    cloud = ".".join(host.split(".")[-2:])
    if cloud in AUTHORITIES and not environ.get("AZURE_AUTHORITY_HOST"):
        options["authority"] = AUTHORITIES[cloud]
    # A node of Azure ML has its identity's client id in the second; the credential by itself reads the first only
    # (https://github.com/Azure/azure-sdk-for-python/issues/30427).
    if client_id := environ.get("AZURE_CLIENT_ID") or environ.get("DEFAULT_IDENTITY_CLIENT_ID"):
        options["managed_identity_client_id"] = client_id
    return DefaultAzureCredential(**options)
