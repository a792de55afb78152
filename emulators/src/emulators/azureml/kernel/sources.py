"""The locations of inputs, in every form that Azure ML accepts. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from emulators.azureml.kernel.errors import BadRequest

_SCOPE = r"(?:subscriptions/[^/]+/resource[gG]roups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/)?"
_DATASTORE = re.compile(rf"azureml://{_SCOPE}datastores/(?P<datastore>[^/]+)/(?:paths/)?(?P<path>.*)")
_JOB = re.compile(r"azureml://jobs/(?P<job>[^/]+)/outputs/(?P<output>[^/]+)(?:/paths)?(?:/(?P<path>.*))?")
_KINDS = "codes|components|data|environments|models"
_VERSION = rf"(?P<kind>{_KINDS})/(?P<name>[^/:]+)/(?:versions|labels)/(?P<version>[^/:]+)"
_ID = re.compile(
    rf"(?:azureml:)?(?!azureml://registries/|https?://)(?:.*/)?{_VERSION}", re.IGNORECASE
)  # Resource Manager's
_SHORT = re.compile(r"azureml:(?P<name>[^/:@]+)[:@](?P<version>[^/:@]+)")  # a version, or a label
_REGISTRY = re.compile(  # without a version, the newest is meant
    rf"(?:azureml:)?azureml://registries/(?P<registry>[^/]+)/(?:{_VERSION}|(?P<any>{_KINDS})/(?P<newest>[^/:]+))",
    re.IGNORECASE,
)
_WASBS = re.compile(r"(?:wasbs?|abfss?)://(?P<container>[^@/]+)@(?P<account>[^./]+)\.[^/]+/(?P<path>.*)")
_BLOB_HOST = re.compile(r"(?P<account>[a-z0-9]{3,24})\.(?:blob|dfs)\.core\.[\w.-]+")
ARTIFACTS = "artifacts"  # the output under which a job's logs and ./outputs are found


@dataclass(frozen=True)
class Location:
    """A place in a datastore. `path` is a blob's name or a folder's prefix."""

    datastore: str
    path: str

    def __str__(self) -> str:
        return f"azureml://datastores/{self.datastore}/paths/{self.path}"


@dataclass(frozen=True)
class AssetRef:
    """A reference to a version of an asset, or to a label of the asset's name. `kind` is the collection, for
    example `data` or `models`.

    The asset is in the workspace, or in the registry that `registry` names.
    """

    kind: str
    name: str
    version: str
    registry: str = ""

    def __str__(self) -> str:
        below = f"{self.kind}/{self.name}/versions/{self.version}"
        return f"azureml://registries/{self.registry}/{below}" if self.registry else below


@dataclass(frozen=True)
class JobOutput:
    """An output of another job: a named output or, with `artifacts`, its logs and ./outputs."""

    job: str
    output: str
    path: str

    def __str__(self) -> str:
        return f"azureml://jobs/{self.job}/outputs/{self.output}/paths/{self.path}"


@dataclass(frozen=True)
class AccountBlob:
    """A path in a storage account, given by a URL."""

    account: str
    container: str
    path: str
    uri: str

    def __str__(self) -> str:
        return self.uri


@dataclass(frozen=True)
class Web:
    """Any other address."""

    uri: str

    def __str__(self) -> str:
        return self.uri


Source = Location | AssetRef | JobOutput | AccountBlob | Web


def source(uri: Any, what: str, kind: str = "uri_folder") -> Source:
    """Read an address. `kind` is the kind of azureml:NAME:VERSION: a model, or data. Raises BadRequest."""
    text = str(uri)
    for pattern, make in _FORMS:
        if match := pattern.fullmatch(text):
            return make(match)
    if found := asset(text, "models" if kind.endswith("_model") else "data"):
        if found.kind in ("data", "models"):
            return found
        raise BadRequest(f"{what}: {text[:200]!r} is one of {found.kind}; an input is data or a model.")
    if text.startswith(("https://", "http://")):
        return _web(text, what, kind)
    raise BadRequest(
        f"{what}: {text[:200]!r} is not a path in a datastore, nor another address that is known here; write "
        "azureml://datastores/NAME/paths/PATH, azureml:NAME:VERSION, azureml://jobs/NAME/outputs/NAME or https://..."
    )


def asset(text: str, kind: str) -> AssetRef | None:
    """Return the version in a full id, such as azureml:NAME:VERSION, azureml:NAME@LABEL, or an id in a registry;
    otherwise None.

    `kind` is the kind of the short forms, which do not contain it.
    """
    if match := _REGISTRY.fullmatch(text):
        kind, name = match["kind"] or match["any"], match["name"] or match["newest"]
        return AssetRef(kind.lower(), name, match["version"] or "latest", match["registry"])
    if match := _ID.fullmatch(text):
        return AssetRef(match["kind"].lower(), match["name"], match["version"])
    if match := _SHORT.fullmatch(text):
        return AssetRef(kind, match["name"], match["version"])
    return None


def location(uri: Any, what: str) -> Location:
    """Read the address of a place in a datastore. Only such places can be written to."""
    if match := _DATASTORE.fullmatch(str(uri)):
        return Location(match["datastore"], match["path"])
    raise BadRequest(f"{what}: {uri!r} is not a path in a datastore; write azureml://datastores/NAME/paths/PATH.")


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Source]], ...] = (
    (_DATASTORE, lambda m: Location(m["datastore"], m["path"])),
    (_JOB, lambda m: JobOutput(m["job"], m["output"], m["path"] or "")),
    (_WASBS, lambda m: AccountBlob(m["account"], m["container"], m["path"], m[0])),
)


def _web(text: str, what: str, kind: str) -> Source:
    """Return the source for an https URL: a blob of a storage account if the URL has no signature, otherwise a web
    file."""
    try:
        parts = urlsplit(text)
    except ValueError as error:  # such as an unclosed bracket
        raise BadRequest(f"{what}: {text.partition('?')[0][:200]!r} is not an address: {error}.") from None
    if (host := _BLOB_HOST.fullmatch(parts.hostname or "")) and not parts.query:
        container, _, path = unquote(parts.path).lstrip("/").partition("/")
        return AccountBlob(host["account"], container, path, text)
    if kind != "uri_file":
        shown = text.partition("?")[0][:200]  # the query may contain a signature
        raise BadRequest(f"{what}: {shown!r} can be a file only (uri_file); what lies below it can't be listed.")
    return Web(text)
