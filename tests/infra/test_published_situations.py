"""Published situations in Azure, replayed word for word: messages, second runs of `azd up`, and clusters.

Each case names its source. The words are the source's, so that no test here depends on how the code was written.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulators.arm import declared, deploy
from shared.adapters.azureml.failures import allocation_error, failure_of
from shared.clusters.model import AllocationCode
from shared.jobs.model import FailureCode
from shared.kernel.drop_key import DropKey
from shared.runs.model import RunState
from tests.fakes.world import ROUTE, World, trainers_folder
from tests.infra.azd import READY, Answers, Azd, lines
from tests.infra.declared import INFRA, ROOT, main, parameters
from tests.infra.test_second_up import location

TAKEN = "PreemptionError: Nodes of this job got pre-empted. Check if the run has failed or restarted. Reason: Received "
PREEMPTED = [
    f"AzureMLCompute job failed. {TAKEN}pre-emption warning signal",  # Azure/MachineLearningNotebooks#1242
    f"AzureMLCompute job failed.\n{TAKEN}pre-emption warning signal",  # with a heading line: azure-cli-extensions#3574
    f"UserError: AzureMLCompute job failed. {TAKEN}pre-emption warning signal.",  # microsoft/MLOpsPython#346
]
OF_THE_SCRIPT = [
    "Execution failed. User process 'python' exited with status code 1. Error: AzureMLCompute job failed. " + TAKEN,
    "AzureMLCompute job failed.\nJobFailed: Submitted script failed with a non-zero exit code; see the driver log file "
    "for details.\n\tReason: Job failed with non-zero exit Code",  # Azure/azure-cli-extensions#3574
    "Image build failed. Build log: https://x.blob.core.windows.net/container/logs/cb9u/rawtext.log",
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [replace(ROUTE, resubmissions=2)])


def ended(world: World, message: str) -> World:
    """The state after the only job of a drop failed with this message."""
    world.complete("1.bin")
    name = world.only_run().name
    for raw, error in (("Running", ""), ("Failed", message)):
        world.job_goes(name, raw, error)
        world.deliver_all()
        world.clock.advance(4)
        world.run_until_idle()
    return world


@pytest.mark.parametrize("message", PREEMPTED)
def test_a_preempted_job_is_followed_by_another(world: World, message: str) -> None:
    """ "You have to restart a preempted job" (how-to-create-attach-compute-cluster), and Trainyard does."""
    run = ended(world, message).only_run()
    assert (run.progress.state, run.jobs.job) == (RunState.QUEUED, f"{run.name}-a2")
    assert f"{run.name}-a2" in world.jobs.jobs


@pytest.mark.parametrize("message", OF_THE_SCRIPT)
def test_a_script_can_not_ask_for_another_job(world: World, message: str) -> None:
    """A failure of the script or the image costs one job, even if its output imitates Azure."""
    assert failure_of(message).code is not FailureCode.LOST_NODES
    assert ended(world, message).only_run().progress.state is RunState.FAILED
    assert len(world.jobs.jobs) == 1


def test_a_quota_is_recognized() -> None:
    """Azure/azureml-sdk-for-r#267: the message names the quota and its limit."""
    words = (
        "Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional "
        "details - Deployment Model: Resource Manager, Location: westeurope, Current Limit: 10, Current Usage: 7, "
        "Additional Required: 12, (Minimum) New Limit Required: 19."
    )
    error = allocation_error("", words)
    assert (error.code, error.family, error.limit, error.used) == (AllocationCode.QUOTA, "Total Regional", 10, 7)


@pytest.mark.parametrize("trainer", ["mnist", "cifar_elastic", "bert"])
def test_a_gpu_that_is_not_seen_ends_the_training_before_it_begins(tmp_path: Path, trainer: str) -> None:
    """rapidsai/deployment#719: a driver that is too old for PyTorch's CUDA hides the GPU without an error. The
    training ends before it reads the data, which is missing here; the message has the driver, the build and the
    flag that allows the processor."""
    environ = {**os.environ, "AZUREML_RUN_ID": "r-1", "TRAINYARD_GPUS": "4", "CUDA_VISIBLE_DEVICES": ""}
    environ.pop("TRAINYARD_LOCAL_NODES", None)
    argv = [sys.executable, str(ROOT / "trainers" / trainer / "train.py"), "--data", str(tmp_path / "none")]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2, done.stderr
    assert re.search(r"this node has 4 GPUs, and PyTorch sees none: NVIDIA driver .+, PyTorch \d", done.stderr)
    assert "--device cpu (-p device=cpu of a submission or a drop)" in done.stderr


# --- the hooks --------------------------------------------------------------------------------------------------------

# Azure/azure-cli#20170: the CLI's own message, without the service's code
NO_DATA_ROLE = (
    "ERROR: \nYou do not have the required permissions needed to perform this operation.\nDepending on your operation, "
    'you may need to be assigned one of the following roles:\n    "Storage Blob Data Owner"\n    "Storage Blob Data '
    'Contributor"'
)
# Azure/azure-sdk-for-python#28284
NOT_YET = (
    "ERROR: This request is not authorized to perform this operation using this permission.\nRequestId:8ec6ffdc\n"
    "ErrorCode:AuthorizationPermissionMismatch"
)
# microsoft/AzureStorageExplorer#4105: the account's firewall, which no role opens
FIREWALL = "ERROR: This request is not authorized to perform this operation.\nErrorCode:AuthorizationFailure"
# Azure/azure-cli#28009: the sentence of `az ad`, without Graph's code
NO_SUCH_APP = (
    "ERROR: Resource 'e90a1407-55c3-432d-9cb1-3638900a9d22' does not exist or one of its queried reference-property "
    "objects are not present."
)


@pytest.mark.parametrize(("answer", "asked"), [(NO_DATA_ROLE, 3), (NOT_YET, 3), (FIREWALL, 1)])
def test_only_a_missing_role_is_waited_for(azd: Azd, answer: str, asked: int) -> None:
    """Azure/azure-dev#8026: a role takes minutes to apply. A firewall does not go away, so it is reported at once,
    and the deployment continues."""
    azd.provisioned()
    done, calls = azd.hook("postprovision", [("storage blob list", {"then": [answer, answer, []]}), *READY])
    assert done.returncode == 0, done.stderr
    assert sum("storage blob list" in line for line in lines(calls)) == asked
    assert ("AuthorizationFailure" in done.stdout) is (answer is FIREWALL)


def test_a_new_registration_is_found_later(azd: Azd) -> None:
    """Entra ID does not find a new object at once, and reports that in a sentence without a code."""
    azd.set(TRAINYARD_AUTH="entra")
    done, calls = azd.hook("preprovision", [("applications(appId=", {"then": [NO_SUCH_APP, {}]}), *READY])
    assert done.returncode == 0, done.stderr
    assert sum("applications(appId=" in line for line in lines(calls)) == 3


@pytest.mark.parametrize(
    "answer",
    [
        "ERROR: (RoleAssignmentExists) The role assignment already exists.",  # Azure ML granted AcrPull meanwhile
        "ERROR: (RoleAssignmentExists) The role assignment already exists. The ID of the existing assignment is x.",
    ],
)
def test_a_grant_that_azure_ml_made_first_is_fine(azd: Azd, answer: str) -> None:
    """https://learn.microsoft.com/azure/role-based-access-control/troubleshooting."""
    azd.provisioned()
    answers: Answers = [("role assignment list", []), ("role assignment create", answer), *READY]
    done, _ = azd.hook("postprovision", answers)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "answer",
    [
        "ERROR: (400) Start date of budgets cannot be updated. Please delete and create a new budget",  # bicep#7149
        "ERROR: (400) Invalid budget start date; start date must be within the current timegrain period",
    ],
)
def test_a_budget_that_azure_refuses_ends_nothing(azd: Azd, answer: str) -> None:
    """Azure/bicep#7149 and Azure/azure-quickstart-templates#7095: the role is deployed, and the budget's refusal is
    a warning."""
    role: Any = {"properties": {"outputs": {"clusterRoleId": {"value": "role-1"}}}}
    done, _ = azd.hook("preprovision", [("monthlyBudget=100", answer), ("monthlyBudget=0", role), *READY])
    assert done.returncode == 0, done.stderr
    assert "Azure refused the budget" in done.stdout


def test_the_topic_of_defender_is_found_and_used(azd: Azd) -> None:
    """microsoft/AzureTRE#4978: the scan made a topic, named after the account and a GUID, before the deployment
    could. Another team's account has one too."""
    account = main().one(declared.ACCOUNT)
    scan, theirs = f"{account.name}-f34584bb-0c5a-4603-a3d2-0123456789f5", "other-f34584bb"
    topics: Any = {
        "value": [
            {"name": theirs, "properties": {"source": account.id.replace(account.name, "other")}},
            {"name": scan, "properties": {"source": account.id.replace("resourceGroups", "resourcegroups")}},
        ]
    }
    azd.set(AZURE_ENV_NAME="local", AZURE_LOCATION="local", AZURE_SUBSCRIPTION_ID=main().subscription)
    done, _ = azd.hook("preprovision", [("systemTopics", topics), *location("local"), *READY])
    assert done.returncode == 0, done.stderr
    assert azd.values["TRAINYARD_STORAGE_TOPIC"] == scan


# --- a second `azd up` ------------------------------------------------------------------------------------------------


def test_whatever_was_set_by_hand_is_there_after_a_second_deployment() -> None:
    """bicep-registry-modules#949 and #3311: a deployment replaces all of a site's settings, as one collection."""
    (settings,) = [r for r in main().of("Microsoft.Web/sites/config") if r.last_name == "appsettings"]
    by_hand = {name: f"by hand {name}" for name in ("TRAINYARD_SMTP_URL", "TRAINYARD_MAIL_FROM", "TEAMS_OWN_SETTING")}
    changed = replace(settings, body={**settings.body, "properties": {**settings.properties, **by_hand}})
    before = replace(main(), resources={**main().resources, settings.id.lower(): changed})
    for _ in range(3):
        before = deploy.deploy(INFRA / "main.bicep", parameters(), before=before)
        assert by_hand.items() <= declared.app_settings(before).items()


@pytest.mark.parametrize("size", ["Standard_NC4as_T4_v3", "STANDARD_NC4AS_T4_V3", "standard_d2S_V3"])
def test_a_cluster_keeps_its_size(size: str) -> None:
    """azure-rest-api-specs#18889: Azure reports success, but the nodes keep their size, however the size is
    spelled."""
    after = deploy.deploy(INFRA / "main.bicep", parameters(TRAINYARD_CLUSTER_VM_SIZE=size), before=main())
    (cluster,) = after.of("Microsoft.MachineLearningServices/workspaces/computes")
    assert cluster.properties["properties"]["vmSize"] == "Standard_D2s_v3"


def test_the_drop_of_a_preempted_run_stays_one_run(world: World) -> None:
    """However often Azure preempts the node, a drop has one run."""
    ended(world, PREEMPTED[0])
    world.job_goes(f"{world.only_run().name}-a2", "Completed")
    world.deliver_all()
    world.run_until_idle()
    assert world.only_run().asked.drop == str(DropKey("mnist", "a"))
