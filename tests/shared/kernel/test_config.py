"""Errors in settings and routes name the setting or key and what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.adapters.azureml.arm import endpoints
from shared.jobs import routes_file
from shared.jobs.build import build
from shared.jobs.limits import Limits
from shared.jobs.order import JobOrder, Values
from shared.jobs.readers import trainer
from shared.jobs.readers.azureml import read_layer
from shared.jobs.readers.expressions import read_command
from shared.jobs.readers.trainer import PYTHON
from shared.jobs.route import Routes
from shared.jobs.spec import DataInput, Environment, JobSpec, Layer
from shared.kernel import settings
from shared.kernel.errors import BadSetting
from shared.kernel.index_settings import EVERY_5_MINUTES_LATER, ROOT, scaling_schedule
from shared.kernel.settings import Settings

ENV = {
    "AzureWebJobsStorage": "AccountKey=secret",
    "AML_SUBSCRIPTION_ID": "s",
    "AML_RESOURCE_GROUP": "g",
    "AML_WORKSPACE": "w",
}


def test_settings_hide_their_secrets() -> None:
    """Neither connection string nor topic key shows in repr."""
    settings = Settings.from_env({**ENV, "TRAINYARD_TOPIC_ENDPOINT": "https://t", "TRAINYARD_TOPIC_KEY": "secret"})

    assert settings.storage.connection_string == "AccountKey=secret"
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("change", "schedule", "dry_run"),
    [
        ({}, EVERY_5_MINUTES_LATER, False),
        ({"TRAINYARD_SWEEP_SCHEDULE": "old", "TRAINYARD_SWEEP_DRY_RUN": "true"}, "old", True),
        ({"TRAINYARD_SCALING_SCHEDULE": "new", "TRAINYARD_SCALING_DRY_RUN": "true"}, "new", True),
        (
            {
                "TRAINYARD_SWEEP_SCHEDULE": "old",
                "TRAINYARD_SCALING_SCHEDULE": "new",
                "TRAINYARD_SWEEP_DRY_RUN": "true",
                "TRAINYARD_SCALING_DRY_RUN": "false",
            },
            "new",
            False,
        ),
    ],
)
def test_a_renamed_setting_keeps_its_earlier_name(change: dict[str, str], schedule: str, dry_run: bool) -> None:
    """A deployment that sets only the earlier name behaves as before; the current name wins."""
    assert (scaling_schedule(change), Settings.from_env({**ENV, **change}).rules.dry_run) == (schedule, dry_run)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"AML_WORKSPACE": ""}, "AML_WORKSPACE is not set"),
        ({"AzureWebJobsStorage": ""}, "none is set"),
        ({"AzureWebJobsStorage__accountName": "a"}, "AzureWebJobsStorage and AzureWebJobsStorage__accountName are set"),
        (
            {"AzureWebJobsStorage": "", "AzureWebJobsStorage__blobServiceUri": "https://a.blob.core.windows.net"},
            "AzureWebJobsStorage__queueServiceUri has value ''",
        ),
        ({"AML_CLIENT_KWARGS": "{"}, "AML_CLIENT_KWARGS is not JSON"),
        ({"AML_CLIENT_KWARGS": "[]"}, "AML_CLIENT_KWARGS must be a JSON object"),
        ({"TRAINYARD_TOPIC_ENDPOINT": "http://t"}, "must begin with https://"),
        ({"TRAINYARD_SCALING_DRY_RUN": "yes"}, "TRAINYARD_SCALING_DRY_RUN has value 'yes'. Choose true or false"),
        ({"TRAINYARD_SWEEP_DRY_RUN": "yes"}, "TRAINYARD_SWEEP_DRY_RUN has value 'yes'. Choose true or false"),
        ({"TRAINYARD_LEASE_MAX_HOURS": "900"}, "Give hours from 0 to 744"),
    ],
)
def test_a_bad_setting_is_named(change: dict[str, str], why: str) -> None:
    """The error names the setting and its problem."""
    with pytest.raises(BadSetting, match=why):
        Settings.from_env({**ENV, **change})


def test_storage_is_found_in_every_cloud() -> None:
    """Service addresses are used as given; an account name means the public cloud."""
    clouds = {"core.usgovcloudapi.net": "", "core.windows.net": "a"}
    for suffix, name in clouds.items():
        uris = {f"AzureWebJobsStorage__{s}ServiceUri": f"https://a.{s}.{suffix}/" for s in settings.STORAGE_SERVICES}
        env = {**ENV, "AzureWebJobsStorage": "", **({"AzureWebJobsStorage__accountName": name} if name else uris)}
        storage = Settings.from_env(env).storage
        expected = [f"https://a.{service}.{suffix}" for service in settings.STORAGE_SERVICES]
        assert [storage.blob, storage.queue, storage.table] == expected


def load(tmp_path: Path, text: str) -> Routes:
    (tmp_path / "routes.yaml").write_text(text)
    (tmp_path / "job.yaml").write_text("command: python x.py\n")
    (tmp_path / "elastic.yaml").write_text("command: python -m elastic.launch x.py\n")
    (tmp_path / "trainers" / "mnist").mkdir(parents=True)
    (tmp_path / "trainers" / "mnist" / "job.yaml").write_text("command: python train.py\n")
    return routes_file.load(tmp_path / "routes.yaml", tmp_path / "trainers").routes


def test_a_route_has_defaults(tmp_path: Path) -> None:
    """A route needs only a trainer and a cluster."""
    route = load(tmp_path, "routes: {mnist: {trainer: mnist, cluster: cpu}}")["mnist"]

    assert (route.nodes, route.experiment, route.quiet_seconds, route.job_file.allowed) == (1, "mnist", 60, True)
    assert route.template.command == read_command("python train.py")


def test_a_route_may_name_a_template_of_its_own(tmp_path: Path) -> None:
    """A template is searched beside the routes file."""
    route = load(tmp_path, "routes: {x: {template: job.yaml, cluster: cpu, job_file: {environments: [e]}}}")["x"]

    assert route.template == JobSpec(command=read_command("python x.py"))
    assert route.job_file.environments == ("e",)


def test_an_elastic_route_has_a_range_of_nodes(tmp_path: Path) -> None:
    """A range in `nodes` is for jobs that start elastic.launch; its maximum counts as the number of nodes."""
    text = "routes: {e: {template: elastic.yaml, cluster: cpu, nodes: {min: 2, max: 4}, resubmissions: 3}}"
    route = load(tmp_path, text)["e"]
    assert (route.min_nodes, route.nodes, route.max_nodes, route.resubmissions) == (2, 4, 4, 3)


SWEPT = "routes: {m: {trainer: mnist, cluster: cpu, sweep: %s}}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("routes: {}", "at least one route"),
        ("x: 1", "at least one route"),
        ("routes: {m: 3}", "must be a mapping with the keys allow, card, check, cluster"),
        (
            "routes: {m: {trainer: mnist, cluster: cpu, node: 2}}",
            "unknown keys node; choose from allow, card, check, cluster",
        ),
        ("routes: {m: {trainer: mnist}}", "does not name a cluster"),
        ("routes: {m: {trainer: mnist, cluster: a/b}}", "cluster is 'a/b'"),
        ("routes: {m: {trainer: mnist, cluster: cpu, experiment: ../x}}", r"experiment is '\.\./x'"),
        ("routes: {m: {trainer: mnist, cluster: cpu, vm_size: large}}", "vm_size is 'large'; write a VM size of Azure"),
        (
            "routes: {m: {trainer: mnist, cluster: cpu, vm_size: Standard_NC999_v9}}",
            "state it beside vm_size, as gpus: 4",
        ),
        ("routes: {m: {trainer: nope, cluster: cpu}}", "names trainer 'nope'; there are mnist"),
        ("routes: {m: {cluster: cpu}}", "one of trainer and template"),
        ("routes: {m: {template: no.yaml, cluster: cpu}}", "no.yaml can't be read"),
        ("routes: {m: {trainer: mnist, cluster: cpu, nodes: 0}}", "nodes is 0; it must be a number from 1 to 1000"),
        ("routes: {m: {trainer: mnist, cluster: cpu, nodes: true}}", "nodes is True"),
        ("routes: {m: {trainer: mnist, cluster: cpu, nodes: {min: 1, max: 2}}}", "does not start elastic.launch"),
        ("routes: {e: {template: elastic.yaml, cluster: cpu, nodes: {min: 3, max: 2}}}", "nodes.min is 3"),
        ("routes: {e: {template: elastic.yaml, cluster: cpu, nodes: {least: 3}}}", "or {min: ..., max: ...}"),
        ("routes: {m: {trainer: mnist, cluster: cpu, job_file: maybe}}", "choose allowed, forbidden or"),
        (SWEPT % "{trials: 3}", r"route 'm': sweep has no search space: give a parameter a range, 0.001\.\.0.1"),
        (SWEPT % "{search_space: {lr: 1..2}}", "route 'm': sweep.metric is missing"),
        (SWEPT % "{metric: loss, search_space: {lrr: 1..2}}", "sweep.search_space.lrr is not a parameter"),
        (SWEPT % "{metric: loss, trials: 0, search_space: {lr: 1..2}}", "sweep.trials is 0; use a whole number from 1"),
        (SWEPT % "{metric: a, stops: asha}", "sweep.stops is not known; there are at_once, budget"),
        (SWEPT % "20", "sweep must be a mapping, such as {trials: 20"),
        (
            SWEPT % "{metric: loss, search_space: {lr: 0.1..0.001}}",
            r"lr is 0.1\.\.0.001, whose ends are in the wrong order; "
            r"write 0.001\.\.0.1",
        ),
        (SWEPT % "{metric: loss, search_space: {lr: 2..2}}", "whose ends are equal; write the single value 2"),
        ("routes: {m: {trainer: mnist, cluster: cpu, nodes: 5, max_nodes: 4}}", "nodes is 5, but max_nodes is 4"),
        ("routes:\n  m: {trainer: mnist, cluster: cpu}\n  m: {trainer: mnist, cluster: gpu}", "'m' is there twice"),
        ("routes: [", "is not valid YAML"),
    ],
)
def test_a_bad_routes_file_is_explained(tmp_path: Path, text: str, why: str) -> None:
    """The error names file, route, key and choices."""
    with pytest.raises(BadSetting, match=why):
        load(tmp_path, text)


FOLDER = """
description: A line
inputs:
  epochs: {type: integer, default: 100, min: 1, description: passes over the points}
  start_at: {type: number, default: 0.5}
"""


def own_trainer(
    tmp_path: Path, job: str, requirements: str = "torch>=2.6\n# numbers\nnumpy  # of any version\n"
) -> Path:
    trainers = tmp_path / "trainers"
    (trainers / "line").mkdir(parents=True)
    (trainers / "environment.yaml").write_text("{name: x, image: the-image, conda_file: conda.yaml}")
    for name, text in (("job.yaml", job), ("train.py", ""), ("requirements.txt", requirements)):
        (trainers / "line" / name).write_text(text)
    return trainers


def test_a_folder_is_a_trainer(tmp_path: Path) -> None:
    """A folder with parameters, script and requirements gives a route, a command, an environment and typed
    parameters."""
    trainers = own_trainer(tmp_path, FOLDER)
    text = "{limits: {cluster: cpu, max_nodes: 3}, routes: {m: {trainer: mnist, cluster: cpu, max_nodes: 2}}}"
    route = load(tmp_path, text)["line"]
    assert (route.trainer, route.cluster, route.nodes, route.max_nodes, route.experiment) == (
        "line",
        "cpu",
        1,
        3,
        "line",
    )
    assert route.template.command == read_command(
        "python line/train.py --data ${{inputs.data}} --epochs ${{inputs.epochs}} --start-at ${{inputs.start_at}} "
        "--model-dir ${{outputs.models}} --metrics-dir ${{outputs.metrics}}"
    )
    assert route.template.inputs == {"data": DataInput(kind="folder"), "epochs": 100, "start_at": 0.5}
    assert route.parameters["epochs"] == {
        "type": "integer", "default": 100, "minimum": 1, "description": "passes over the points",
    }  # fmt: skip
    conda = {"channels": ["conda-forge"], "dependencies": [PYTHON, "pip", {"pip": ["torch>=2.6", "numpy"]}]}
    assert route.template.environment == Environment("the-image", conda)
    assert trainer.trainer_template(trainers, "line")[0] == route.template


def test_a_folder_has_a_route_only_where_one_is_meant(tmp_path: Path) -> None:
    """The routes in the file come first. A trainer that the file names gets no second route, and without a cluster
    there is no route."""
    own_trainer(tmp_path, FOLDER)
    routes = load(tmp_path, "{limits: {cluster: cpu}, routes: {line: {trainer: mnist, cluster: cpu}}}")
    assert {name: route.trainer for name, route in routes.items()} == {"line": "mnist"}
    (tmp_path / "routes.yaml").write_text(
        "{limits: {cluster: cpu}, routes: {x: {trainer: line, cluster: cpu, nodes: 2}}}"
    )
    assert sorted(routes_file.load(tmp_path / "routes.yaml", tmp_path / "trainers").routes) == ["mnist", "x"]
    (tmp_path / "routes.yaml").write_text("{routes: {x: {trainer: line, cluster: cpu, nodes: 2}}}")
    assert sorted(routes_file.load(tmp_path / "routes.yaml", tmp_path / "trainers").routes) == ["x"]


@pytest.mark.parametrize(
    ("job", "requirements", "why"),
    [
        ("inputs: {lr: {type: number}}", "", "line/job.yaml: inputs.lr has no default"),
        ("inputs: {lr: {type: number, default: fast}}", "", "the default of lr is 'fast'; use a number"),
        ("inputs: {lr: {type: number, default: 1, low: 0}}", "", "keywords from default"),
        ("compute: azureml:other", "", "compute is 'other'; the routes file allows cpu"),
        ("experiment_name: a b", "", "experiment_name is 'a b'"),
        ("description: x", "-r ../requirements.txt", "names a file, .* list the packages themselves"),
    ],
)
def test_a_bad_trainer_is_explained(tmp_path: Path, job: str, requirements: str, why: str) -> None:
    """The error names the trainer's file, its problem, and the allowed form."""
    own_trainer(tmp_path, job, requirements)
    with pytest.raises(BadSetting, match=why):
        load(tmp_path, "{limits: {cluster: cpu}, routes: {m: {trainer: mnist, cluster: cpu}}}")


@pytest.mark.parametrize(
    ("keys", "processes"),
    [
        ("vm_size: Standard_NC96ads_A100_v4", 4),
        ("vm_size: STANDARD_NC4AS_T4_V3", 1),
        ("vm_size: Standard_D4_v3", 1),
        ("vm_size: Standard_NC999_v9, gpus: 16", 16),
        ("gpus: 2", 2),
        ("gpus: 0", 1),
        ("nodes: 1", 0),
    ],
)
def test_processes_follow_the_machines(tmp_path: Path, keys: str, processes: int) -> None:
    """A node runs one process per GPU of the route's VM size, and one without GPUs. Without a known size, `gpus` or
    the template decides."""
    for name, more in (("x", ", distribution: {type: pytorch, process_count_per_instance: 3}"), ("y", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.yaml").write_text(f"{{command: run, environment: e{more}}}")
    entries = ", ".join(f"{name}: {{trainer: {of}, cluster: cpu, {keys}}}" for name, of in (("r", "x"), ("s", "y")))
    (tmp_path / "routes.yaml").write_text(f"routes: {{{entries}}}")
    routes = routes_file.load(tmp_path / "routes.yaml", tmp_path).routes
    built = build(JobOrder("run", "t", routes["r"].template, routes["r"].limits, routes["r"].defaults)).job
    assert built
    assert routes["r"].processes == processes
    assert (built.distribution, built.processes) == ("pytorch", processes or 3)
    assert routes["s"].processes == 0, "its job has no processes to count"


def test_elastic_processes_follow_the_machines(tmp_path: Path) -> None:
    """An elastic job's launcher reads torchrun's own variable, which a job file may override."""
    route = load(tmp_path, "routes: {e: {template: elastic.yaml, cluster: cpu, nodes: {min: 1, max: 2}, gpus: 4}}")["e"]
    order = JobOrder("run", "t", route.template, route.limits, route.defaults)
    own = replace(order, written=Layer(JobSpec(variables={"PET_NPROC_PER_NODE": "2"})))
    jobs = [build(order).job, build(own).job]
    assert [job and job.variables["PET_NPROC_PER_NODE"] for job in jobs] == ["4", "2"]


def test_the_shipped_routes_load() -> None:
    """routes.yaml and its templates are valid."""
    assert "mnist" in routes_file.load(ROOT / "routes.yaml", ROOT / "trainers").routes


def test_azure_ml_is_found_in_every_cloud() -> None:
    """A cloud has MLClient's name or a description; an unknown name without a description is refused with the
    choices."""
    assert endpoints({}) == ("https://management.azure.com", "https://ml.azure.com")
    assert endpoints({"cloud": "AzureChinaCloud"}) == ("https://management.chinacloudapi.cn", "https://ml.azure.cn")
    own = {"resource_manager": "https://here/", "aml_resource_id": "https://there"}
    assert endpoints({"cloud": "Mine", "cloud_metadata": own}) == ("https://here", "https://there")
    with pytest.raises(BadSetting, match=r"cloud 'Mine'\. Choose AzureCloud, AzureUSGovernment, AzureChinaCloud"):
        endpoints({"cloud": "Mine"})


def test_a_templates_own_time_limit_counts(tmp_path: Path) -> None:
    """A route without a timeout uses its template's as the default, and a day as the limit for requests."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "job.yaml").write_text("{command: x, environment: e, limits: {timeout: 900}}")
    (tmp_path / "routes.yaml").write_text(
        "routes: {own: {trainer: x, cluster: cpu}, other: {trainer: x, cluster: cpu, timeout_seconds: 600}}"
    )
    routes = routes_file.load(tmp_path / "routes.yaml", tmp_path).routes
    assert (routes["own"].defaults.timeout_seconds, routes["own"].limits.timeout_seconds) == (0, 86400)
    assert (routes["other"].defaults.timeout_seconds, routes["other"].limits.timeout_seconds) == (600, 600)


def test_a_setting_allows_parts_of_whole_jobs(tmp_path: Path) -> None:
    """TRAINYARD_ALLOW allows services, identity and queue_settings for jobs without a route, in addition to what
    the routes file allows; routes and other parts are unchanged."""
    (tmp_path / "routes.yaml").write_text(
        "limits: {allow: [code], cluster: cpu}\nroutes: {mnist: {trainer: mnist, cluster: cpu}}"
    )
    settings = Settings.from_env({**ENV, "TRAINYARD_ALLOW": "services, identity,queue_settings"})
    found = routes_file.load(tmp_path / "routes.yaml", ROOT / "trainers", settings.allow)
    body = {"services": {"a": {}}, "identity": {"type": "managed"}, "queue_settings": {"job_tier": "spot"}}
    whole = {"command": "x", "environment": "azureml:e:1", "compute": "cpu", **body}

    def refused(limits: Limits, job: dict[str, Any]) -> list[str]:
        order = JobOrder("r", "t", JobSpec(), limits, written=read_layer(job), defaults=Values("e"))
        return [problem.path for problem in build(order).problems]

    assert refused(found.limits, whole) == []
    assert refused(found.limits, {**whole, "resources": {"docker_args": "--privileged"}}) == ["docker_args"]
    assert refused(routes_file.load(tmp_path / "routes.yaml", ROOT / "trainers").limits, whole) == [
        "services",
        "identity",
        "queue_settings",
    ]
    assert found.routes["mnist"].allow == frozenset()
    assert "code" in found.limits.allow
    with pytest.raises(BadSetting, match="TRAINYARD_ALLOW: allow names service; choose from code"):
        routes_file.load(tmp_path / "routes.yaml", ROOT / "trainers", ["service"])
