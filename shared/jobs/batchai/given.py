"""The context of a Batch AI document, from the request."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.jobs.readers.place_text import ASSET_FORM


class BatchAI(Struct, forbid_unknown_fields=True):
    """The context of a Batch AI job.json, which does not state the place of its files."""

    cluster: Annotated[dict[str, Any] | None, Meta(description="The cluster.json, for its mounts.")] = None
    project: Annotated[dict[str, Any] | None, Meta(description="The project.json.")] = None
    mounts: Annotated[
        dict[str, Annotated[str, Meta(min_length=1, max_length=1024)]],
        Meta(description="Where the files of a mount are, by its path, share or container; written like `data`."),
    ] = {}
    storage_account: Annotated[
        Annotated[str, Meta(pattern="^[a-z0-9]{3,24}$")] | None,
        Meta(description="Fills <AZURE_BATCHAI_STORAGE_ACCOUNT>."),
    ] = None
    environment: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | None,
        Meta(description=f"An environment to use instead of the document's image: {ASSET_FORM}, or an image."),
    ] = None
    files: Annotated[
        dict[Annotated[str, Meta(min_length=1, max_length=1024)], Annotated[str, Meta(max_length=65536)]],
        Meta(
            max_length=20,
            description="Texts to put into mounts: by path, logs/scripts/train.py, or by the name of a script.",
        ),
    ] = {}
    strict: Annotated[bool, Meta(description="Refuse the document if any field has no full equivalent.")] = False
