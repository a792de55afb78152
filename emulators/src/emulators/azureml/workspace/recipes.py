"""The recipe of a job's environment: a version in the workspace, a Microsoft environment, or the job's own
definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulators.azureml.environments import recipe
from emulators.azureml.environments.curated import curated
from emulators.azureml.environments.dockerfile import from_dockerfile
from emulators.azureml.environments.model import NotHere, Recipe
from emulators.azureml.kernel import checks
from emulators.azureml.kernel.errors import ArmError, DataError
from emulators.azureml.kernel.models import Json
from emulators.azureml.kernel.service_limits import CONTEXT_BYTES, CONTEXT_FILES
from emulators.azureml.kernel.sources import AssetRef, location
from emulators.azureml.storage.blobs import Blobs, Place
from emulators.azureml.workspace.places import Places
from emulators.azureml.workspace.workspace import Workspace

DOCKERFILE_LIMIT = 1 << 20  # bytes of a Dockerfile, and of each file that it installs from


class Recipes:
    """Finds recipes. `made_of` has the environments whose requirements on this machine differ from Azure's."""

    def __init__(
        self, workspace: Workspace, blobs: Blobs, places: Places, made_of: Mapping[str, Sequence[str]]
    ) -> None:
        self._workspace = workspace
        self._blobs = blobs
        self._places = places
        self._made_of = made_of

    async def find(self, wanted: AssetRef | Json) -> Recipe:
        """Return the recipe of an environment's version, or of an environment defined in a job.

        Raises DataError if the environment can't be installed here, or its build context can't be read.
        """
        try:
            if isinstance(wanted, AssetRef):
                return await self._of_version(wanted)
            return await self._of_properties("", wanted)
        except ArmError as error:
            raise DataError(error.message) from error

    async def _of_version(self, wanted: AssetRef) -> Recipe:
        if wanted.name in self._made_of and not wanted.registry:
            return Recipe(tuple(self._made_of[wanted.name]))
        if self._workspace.is_curated(wanted):
            return curated(wanted.name)
        return await self._of_properties(wanted.name, self._workspace.find(wanted).properties)

    async def _of_properties(self, name: str, properties: Json) -> Recipe:
        if build := properties.get("build"):
            return await self._built(build)
        return recipe.registered(name, properties)

    async def _built(self, build: Json) -> Recipe:
        """Return the recipe of a build context: the Dockerfile, and the files for the Dockerfile's installations."""
        context = self._context(checks.text(build, "contextUri"))
        sizes = [size async for _, size in self._blobs.below(context)]
        if len(sizes) > CONTEXT_FILES or sum(sizes) > CONTEXT_BYTES:
            raise NotHere(
                f"The build context {context} has {len(sizes)} files with {sum(sizes)} bytes; Azure ML takes at most "
                f"{CONTEXT_FILES} files and {CONTEXT_BYTES} bytes (https://aka.ms/azure-machine-learning-limits)."
            )
        files = await self._blobs.texts(context, DOCKERFILE_LIMIT)
        name = (checks.optional_text(build, "dockerfilePath") or "Dockerfile").removeprefix("./")
        if name not in files:
            raise NotHere(f"The build context {context} has no {name!r}; it has: {', '.join(sorted(files)) or 'none'}.")

        def read(path: str) -> str:
            wanted = path.removeprefix("./").lstrip("/")
            found = next((text for key, text in files.items() if key == wanted or wanted.endswith(f"/{key}")), None)
            if found is None:
                raise NotHere(f"Dockerfile: it installs from {path!r}, which its build context does not have.")
            return found

        return from_dockerfile(files[name], read)

    def _context(self, uri: str) -> Place:
        if uri.startswith("azureml://"):
            found = self._places.place(location(uri, "The build context"))
            assert isinstance(found, Place), "datastores are containers"
            return found
        return self._blobs.place_of(uri)
