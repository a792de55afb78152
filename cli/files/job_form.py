"""The spelling of paths, registered names and references in Azure ML's job files. The command line writes and
recognizes them; shared/jobs/readers does the same for the app."""

from __future__ import annotations

SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
SCHEME = "azureml:"
PLACE_SCHEME = f"{SCHEME}//"
ASSET_FORM = f"{SCHEME}NAME:VERSION"
_ADDRESSES = ("https://", "http://", "wasb://", "wasbs://", "abfs://", "abfss://", "adl://")


def registered(name: str) -> str:
    """Return the reference to a cluster or a registered asset."""
    return f"{SCHEME}{name}"


def place(store_and_path: str) -> str:
    """Return the URI of a path in a datastore, given in the short form `<datastore>/<path>`."""
    store, _, path = store_and_path.partition("/")
    return f"{PLACE_SCHEME}datastores/{store}/paths/{path}"


def reference(group: str, name: str) -> str:
    """Return the expression for one of the job's `inputs` or `outputs`."""
    return f"${{{{{group}.{name}}}}}"


def has_reference(text: str) -> bool:
    return "${{" in text


def is_remote(path: str) -> bool:
    """Return whether a path or name refers to something outside this machine."""
    return path.lower().startswith((SCHEME, *_ADDRESSES))
