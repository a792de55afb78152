"""Which recipe a job's environment has: a version of the workspace's, one of Microsoft's own, or one made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emulators.azureml import recipe
from emulators.azureml.blobs import Blobs
from emulators.azureml.dockerfile import from_dockerfile
from emulators.azureml.errors import ArmError, DataError
from emulators.azureml.recipe import NotHere, Recipe
from emulators.azureml.workspace import Workspace

DOCKERFILE_LIMIT = 1 << 20  # bytes of a Dockerfile, and of each file that it installs from


class Recipes:
    """`made_of` names environments that are made of other requirements on this machine than in Azure."""

    def __init__(self, workspace: Workspace, blobs: Blobs, made_of: Mapping[str, Sequence[str]]) -> None:
        self._workspace = workspace
        self._blobs = blobs
        self._made_of = made_of

    def check(self, name: str, version: str) -> None:
        """Raise BadRequest if the environment can't be made here, as far as its own words tell."""
        properties = self._properties(name, version)
        if name not in self._made_of and not (properties and properties.get("build")):
            _recipe(name, properties)

    async def find(self, name: str, version: str) -> Recipe:
        """The recipe. Raises DataError if it can't be made here, or its build context can't be read."""
        try:
            properties = self._properties(name, version)
            if name in self._made_of:
                return Recipe(tuple(self._made_of[name]))
            if properties and (build := properties.get("build")):
                return await self._built(build)
            return _recipe(name, properties)
        except ArmError as error:
            raise DataError(error.message) from error

    def _properties(self, name: str, version: str) -> dict[str, Any] | None:
        if self._workspace.is_curated(name):
            return None
        return self._workspace.assets.get("environments", name, version).properties

    async def _built(self, build: Mapping[str, Any]) -> Recipe:
        """The recipe of a build context: its Dockerfile, and the files that this one installs from."""
        context = self._blobs.place_of(str(build.get("contextUri") or ""))
        files = await self._blobs.texts(context, DOCKERFILE_LIMIT)
        name = str(build.get("dockerfilePath") or "Dockerfile").removeprefix("./")
        if name not in files:
            raise NotHere(f"The build context {context} has no {name!r}; it has: {', '.join(sorted(files)) or 'none'}.")

        def read(path: str) -> str:
            wanted = path.removeprefix("./").lstrip("/")
            found = next((text for key, text in files.items() if key == wanted or wanted.endswith(f"/{key}")), None)
            if found is None:
                raise NotHere(f"Dockerfile: it installs from {path!r}, which its build context does not have.")
            return found

        return from_dockerfile(files[name], read)


def _recipe(name: str, properties: dict[str, Any] | None) -> Recipe:
    return recipe.curated(name) if properties is None else recipe.registered(name, properties)
