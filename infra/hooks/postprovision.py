"""After `azd provision`: build the training image in our registry, once for each content of its sources; and let
browsers sign in at the app's address, which is known only now.

The name of the image goes into the package (python3 trainyard.py package --image), so that Azure ML pulls it and builds
nothing itself.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

import registration
from tools import INFRA, HookFailed, az, remember, run, say, setting

TRAINERS = INFRA.parent / "trainers"
SOURCES = (INFRA / "image" / "Dockerfile", TRAINERS / "conda.yaml")
REPOSITORY = "trainyard"


def main() -> None:
    registry, tag = setting("AZURE_REGISTRY_NAME"), digest()
    if tag not in tags(registry):
        build(registry, tag)
    server = az("acr", "show", "--name", registry)["loginServer"]
    remember("TRAINYARD_IMAGE", f"{server}/{REPOSITORY}:{tag}")
    if client := setting("TRAINYARD_ENTRA_CLIENT_ID", ""):
        registration.let_browsers_in(client, setting("TRAINYARD_URL"))


def digest() -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in SOURCES)).hexdigest()[:16]


def tags(registry: str) -> list[str]:
    try:
        found: list[str] = az("acr", "repository", "show-tags", "--name", registry, "--repository", REPOSITORY) or []
    except HookFailed as exc:
        if "not found" in str(exc).lower():  # no image was ever built
            return []
        raise
    return found


def build(registry: str, tag: str) -> None:
    say(f"Building the training image {REPOSITORY}:{tag}; it takes some minutes, the first time")
    with tempfile.TemporaryDirectory() as folder:
        for source in SOURCES:
            shutil.copy(source, Path(folder, source.name))
        az("acr", "build", "--registry", registry, "--image", f"{REPOSITORY}:{tag}", "--no-logs", folder)


if __name__ == "__main__":
    run(main)
