"""After `azd provision`: build the training image in our registry, once for each content of its sources; see that the
nodes may pull it; let browsers sign in at the app's address, which is known only now; and wait for the new roles.

There is an image for nodes with GPUs and one for nodes without; the one that the cluster's VM size needs is built.
Their names go into the package (python3 trainyard.py package --image, --gpu-image), so that Azure ML pulls them and
builds nothing itself. An environment without an image is built by Azure ML, with the first job that needs it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import registration
from preflight import DEFAULT_SIZE
from tools import INFRA, HookFailed, az, az_here, denied, program, remember, rest, run, say, setting, wait_until

TRAINERS = INFRA.parent / "trainers"
DOCKERFILE = INFRA / "image" / "Dockerfile"

ROLES_SECONDS = float(os.environ.get("TRAINYARD_ROLES_SECONDS", "300"))  # tests have less patience
EXISTS = "RoleAssignmentExists"  # https://learn.microsoft.com/azure/role-based-access-control/troubleshooting
REFUSED = "TasksOperationsNotAllowed"  # on free credits: Azure-Samples/azure-search-openai-demo#2220 has the message


@dataclass(frozen=True)
class Image:
    """An image for the training nodes: azd's name for it, its repository, what is in it, and whether it is for GPUs."""

    variable: str
    repository: str
    conda: Path
    gpus: bool


IMAGES = (
    Image("TRAINYARD_IMAGE", "trainyard", TRAINERS / "conda.yaml", gpus=False),
    Image("TRAINYARD_GPU_IMAGE", "trainyard-gpu", TRAINERS / "conda-gpu.yaml", gpus=True),
)


def main() -> None:
    registry = az_here("acr", "show", "--name", setting("AZURE_REGISTRY_NAME"))
    gpus = setting("TRAINYARD_CLUSTER_VM_SIZE", DEFAULT_SIZE).lower().startswith("standard_n")
    for image in IMAGES:
        remember(image.variable, image_name(registry["name"], registry["loginServer"], image, image.gpus == gpus))
    let_nodes_pull(registry["id"])
    if client := setting("TRAINYARD_ENTRA_CLIENT_ID", ""):
        sign_in(client, setting("TRAINYARD_URL"))
    wait_for_roles()


def sign_in(client: str, api: str) -> None:
    """Allow sign-in from a browser at the address of the app.

    If Trainyard did not create the registration, print what its owner has to add.
    """
    if client == setting(registration.MADE_HERE, ""):
        registration.let_browsers_in(client, api)
    else:
        address = registration.callback(api)
        say(f"The app registration {client} must allow the redirect URI {address} and issue ID tokens")


def wait_for_roles() -> None:
    """Wait until Azure Storage enforces the new roles. The check lists a container as the signed-in user.

    A new role takes effect after some minutes. Without the wait, the next step, the upload of the package, may end with
    "Response status code does not indicate success: 403" (Azure/azure-dev#8026). The role of the app is part of the
    same deployment as the role of the user, so the check is a good sign but no proof.
    """
    account = ("--account-name", setting("AZURE_STORAGE_ACCOUNT_NAME"), "--auth-mode", "login")
    tried = ("storage", "blob", "list", "--container-name", "drops", "--num-results", "1", *account)
    said = False

    def in_force() -> bool:
        nonlocal said
        try:
            az(*tried)
        except HookFailed as exc:
            if not denied(exc):
                raise
            if not said:
                say("Waiting until the new roles are in force on the storage account, for at most 5 minutes")
            said = True
            return False
        return True

    try:
        wait_until(in_force, ROLES_SECONDS, "the new roles on the storage account")
    except HookFailed as exc:
        say(f"{exc}\nThe deployment goes on. If its upload ends with 403, run azd deploy in some minutes.")


def image_name(registry: str, server: str, image: Image, needed: bool) -> str:
    """The image's full name, or nothing where Azure ML builds the environment by itself. Only one `needed` is built."""
    tag = digest(image)
    name = f"{server}/{image.repository}:{tag}"
    if tag in tags(registry, image.repository):
        return name
    if not needed:
        return ""
    say(f"Building the training image {image.repository}:{tag}; it takes some minutes, the first time")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(DOCKERFILE, folder)
        shutil.copy(image.conda, Path(folder, "conda.yaml"))
        return name if build(registry, name, folder) else ""


def digest(image: Image) -> str:
    return hashlib.sha256(DOCKERFILE.read_bytes() + b"\0" + image.conda.read_bytes()).hexdigest()[:16]


def tags(registry: str, repository: str) -> list[str]:
    """Return the tags of a repository; none if no image was ever built."""
    if repository not in (az_here("acr", "repository", "list", "--name", registry) or []):
        return []
    found: list[str] = az_here("acr", "repository", "show-tags", "--name", registry, "--repository", repository) or []
    return found


def build(registry: str, name: str, folder: str) -> bool:
    """In the registry; else with the Docker that is here. False if neither can."""
    try:
        az_here("acr", "build", "--registry", registry, "--image", name.partition("/")[2], "--no-logs", folder)
    except HookFailed as exc:
        if REFUSED not in str(exc):
            raise
    else:
        return True
    say("This subscription may not build images in its registry: Azure pauses ACR Tasks where free credits pay.")
    if shutil.which("docker"):
        say("Building it with the Docker of this machine instead")
        az_here("acr", "login", "--name", registry)
        for argv in (["build", "--platform", "linux/amd64", "--tag", name, folder], ["push", name]):
            if subprocess.run([program("docker"), *argv]).returncode:
                raise HookFailed(f"docker {argv[0]} failed; its own words are above. Run azd provision again.")
        return True
    let_the_cluster_build(registry)
    return False


def let_the_cluster_build(registry: str) -> None:
    """Let Azure ML build on the cluster: it builds with ACR Tasks too, unless the workspace names a compute for it.

    The build pushes the image, so the identity of the nodes needs AcrPush. All trainings run as this identity, and with
    AcrPush any training could replace the image of all others. So the hook grants nothing, and prints the command.
    """
    rest("patch", workspace_address(), {"properties": {"imageBuildCompute": "cpu-cluster"}})
    who = setting("AZURE_NODES_PRINCIPAL_ID")
    say(
        "There is no Docker here either, so Azure ML builds the environment on its cluster, for the first job. "
        "Better install Docker and run azd provision again, to have the image before the first job. Otherwise let the "
        "identity of the nodes push. Any training can then replace the image that all trainings use:\n"
        f"az role assignment create --role AcrPush --assignee-object-id {who} "
        "--assignee-principal-type ServicePrincipal "
        f'--scope "$(az acr show --name {registry} --query id --output tsv)"'
    )


def workspace_address() -> str:
    group = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/resourceGroups/{setting('AZURE_RESOURCE_GROUP')}"
    place = f"{group}/providers/Microsoft.MachineLearningServices/workspaces"
    return f"{place}/{setting('AZURE_WORKSPACE_NAME')}?api-version=2024-04-01"


def let_nodes_pull(registry_id: str) -> None:
    """Azure ML grants AcrPull to a cluster's identity if the registry is there first; else, and only then, we do."""
    who, role = setting("AZURE_NODES_PRINCIPAL_ID"), ("--role", "AcrPull", "--scope", registry_id)
    there = az_here("role", "assignment", "list", *role) or []
    if any(grant["principalId"] == who for grant in there):
        return
    try:
        az_here(
            *("role", "assignment", "create", *role),
            *("--assignee-object-id", who, "--assignee-principal-type", "ServicePrincipal"),
        )
    except HookFailed as exc:
        if EXISTS not in str(exc):  # Azure ML was quicker
            raise


if __name__ == "__main__":
    run(main)
