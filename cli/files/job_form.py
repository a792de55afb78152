"""How Azure ML's job file spells places, registered names and references: what the command line writes into such a
file, and what it finds there. The app has the like in shared/jobs/readers."""

from __future__ import annotations

SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
SCHEME = "azureml:"
PLACE_SCHEME = f"{SCHEME}//"
ASSET_FORM = f"{SCHEME}NAME:VERSION"
_ADDRESSES = ("https://", "http://", "wasb://", "wasbs://", "abfs://", "abfss://", "adl://")


def registered(name: str) -> str:
    """A cluster or a registered asset."""
    return f"{SCHEME}{name}"


def place(store_and_path: str) -> str:
    """The path in a datastore that the short form `<datastore>/<path>` names."""
    store, _, path = store_and_path.partition("/")
    return f"{PLACE_SCHEME}datastores/{store}/paths/{path}"


def reference(group: str, name: str) -> str:
    """The value of one of the job's `inputs` or `outputs`."""
    return f"${{{{{group}.{name}}}}}"


def has_reference(text: str) -> bool:
    return "${{" in text


def is_remote(path: str) -> bool:
    """Whether a path or name is none of this machine."""
    return path.lower().startswith((SCHEME, *_ADDRESSES))
