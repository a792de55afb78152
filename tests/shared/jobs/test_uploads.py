"""Folders that are uploaded for jobs, and code in a drop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.azureml.document import document
from shared.api import records
from shared.drops.model import Drop, DropState
from shared.drops.seal import route_problems
from shared.drops.uploads import Offered, upload_addresses
from shared.jobs import upload, uploads
from shared.jobs.build import Built, build
from shared.jobs.limits import Limits
from shared.jobs.order import JobOrder, Values
from shared.jobs.readers.azureml import read_environment, read_layer
from shared.jobs.readers.expressions import read_command
from shared.jobs.readers.place_text import place_text
from shared.jobs.snapshot import snapshot_files
from shared.jobs.spec import Environment, JobSpec
from shared.jobs.upload import MIB, File, digest
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, Impossible
from shared.kernel.storage import Blob, Place
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from tests.fakes.world import ROUTE, World, trainers_folder

HELLO = b"print('hello')"
FILES = st.lists(
    st.builds(File, st.text("ab/", min_size=1, max_size=4), st.integers(0, 9), st.just("0" * 32)),
    unique_by=lambda file: file.name,
    min_size=1,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path), [replace(ROUTE, allow=frozenset({"code"}))])
    made.system = replace(made.system, limits=Limits(frozenset({"cpu-cluster"}), allow=frozenset({"code"})))
    return made


def file(name: str, data: bytes = HELLO) -> File:
    import hashlib

    return File(name, len(data), hashlib.md5(data).hexdigest())


def send(world: World, *names: str) -> str:
    """Announce files, upload the missing ones, and return the folder's path."""
    wanted = uploads.begin(world.system, world.system.limits, world.system.routes, map(file, names))
    for name, _ in wanted.files:
        world.blobs.put("azureml-blobstore", f"trainyard/uploads/{wanted.digest}/{name}", HELLO)
    return place_text(wanted.path)


def job(code: str, **more: Any) -> RunRequest:
    body = {"command": "python train.py", "environment": "azureml:e:1", "compute": "azureml:cpu-cluster", "code": code}
    return RunRequest(job={**body, **more})


@given(FILES)
def test_a_folder_is_named_by_its_content(files: list[File]) -> None:
    """The order of files does not change the name; a different name, size or checksum gives another folder."""
    assert digest(files) == digest(reversed(files))
    first = files[0]
    for other in (replace(first, size=first.size + 1), replace(first, md5="1" * 32), replace(first, name="other")):
        assert digest([other, *files[1:]]) != digest(files)
    assert upload.digest_in(upload.path(digest(files))) == digest(files)


def test_only_what_is_missing_is_asked_for(world: World) -> None:
    """Each upload address creates one file. An address may overwrite a file only if its content differs."""
    first = uploads.begin(world.system, world.system.limits, world.system.routes, [file("a.py"), file("lib/b.py")])
    assert [name for name, _ in first.files] == ["a.py", "lib/b.py"]
    assert all("sp=c&" in f"{url}&" and f"/{first.digest}/{name}?" in url for name, url in first.files)
    place = f"trainyard/uploads/{first.digest}"
    world.blobs.put("azureml-blobstore", f"{place}/a.py", HELLO)
    world.blobs.put("azureml-blobstore", f"{place}/lib/b.py", b"something else")
    second = uploads.begin(world.system, world.system.limits, world.system.routes, [file("lib/b.py"), file("a.py")])
    assert [(name, "sp=cw" in url) for name, url in second.files] == [("lib/b.py", True)]
    world.blobs.put("azureml-blobstore", f"{place}/lib/b.py", HELLO)
    assert (
        uploads.begin(world.system, world.system.limits, world.system.routes, [file("lib/b.py"), file("a.py")]).files
        == ()
    )


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([], "no files"),
        (
            [File("big.bin", 200 * MIB, "0" * 32), File("b", 100 * MIB, "0" * 32)],
            r"300.0 MiB.*big.bin \(200.0 MiB\), b",
        ),
        ([File(f"{n}", 1, "0" * 32) for n in range(2001)], "more than 2,000 files"),
        ([File("../x", 1, "0" * 32)], "can't be a file"),
        ([File("x", 1, "zz")], "needs a size and an MD5"),
        ([file("x"), file("x")], "is there twice"),
    ],
)
def test_a_folder_that_can_not_be_sent_says_why(world: World, files: list[File], why: str) -> None:
    """Too many files, too many bytes (with the largest files named) and names that lead outside are refused."""
    with pytest.raises(Impossible, match=why):
        uploads.begin(world.system, world.system.limits, world.system.routes, files)


def test_own_code_must_be_allowed(world: World) -> None:
    """Unless the limits allow `code`, a folder and a job with code are refused."""
    path = send(world, "train.py")
    world.system = replace(world.system, limits=replace(world.system.limits, allow=frozenset()), routes={})
    with pytest.raises(Impossible, match="not allowed here"):
        uploads.begin(world.system, world.system.limits, world.system.routes, [file("a.py")])
    with pytest.raises(Impossible, match=r"code of your own is not allowed here"):
        create.create_run(world.system, job(path))


def test_a_job_waits_for_all_of_its_files(world: World) -> None:
    """A job whose folder is missing, or has a file too many, is refused; a complete folder is registered as code
    once."""
    path = send(world, "train.py")
    stray = f"{path.partition('/paths/')[2]}stray.py"
    world.blobs.put("azureml-blobstore", stray)
    with pytest.raises(Impossible, match="or a folder that was sent"):
        create.create_run(world.system, job(f"{path}lib/"))
    for code in (path, place_text(upload.path("0" * 64))):
        with pytest.raises(Impossible, match="Upload them again") as refused:
            create.create_run(world.system, job(code))
        assert refused.value.code == "upload_incomplete"
    world.blobs.delete("azureml-blobstore", stray)
    git = {"azureml.git.commit": "abc", "azureml.git.dirty": "True", "azureml.git.branch": "trunk"}
    runs = [create.create_run(world.system, job(path, properties=git)) for _ in range(2)]
    world.run_until_idle()
    assert {world.jobs.jobs[run.name].spec["code"] for run in runs} == {f"azureml:trainyard-{path[-65:-49]}:1"}
    run = world.runs.get(runs[0].name).value
    assert run.jobs.code == path[-65:-1]
    assert records.run(run)["git"] == {"commit": "abc", "dirty": True, "branch": "trunk", "repository": ""}


JOB = b"code: ./src\ncommand: python train.py ${{inputs.data}}\nenvironment: azureml:e:1\n"


def drop(world: World, files: dict[str, bytes]) -> Drop:
    """Upload a drop, and return its row once it is closed."""
    for name, data in files.items():
        world.upload(f"mnist/own/{name}", data)
    for _ in range(2):
        world.deliver_all()
        world.run_until_idle()
        world.clock.advance(10)
    world.run_until_idle()
    return world.drops.get(DropKey("mnist", "own")).value  # type: ignore[union-attr]


def test_a_drop_brings_its_code(world: World) -> None:
    """The code folder that a drop's job file names is copied to the place for its content, and runs."""
    closed = drop(world, {"1.bin": b"1", "src/train.py": HELLO, "src/lib/a.py": b"", "job.yaml": JOB})
    run = world.runs.get(closed.run).value
    name = digest([file("train.py"), file("lib/a.py", b"")])
    assert run.asked.request.code == upload.path(name)
    assert world.jobs.jobs[run.name].spec["code"] == f"azureml:trainyard-{name[:16]}:1"
    assert world.blobs.read("azureml-blobstore", f"trainyard/uploads/{name}/train.py", 99) == HELLO


def test_a_drop_that_names_all_of_itself_as_code_is_not_listed_to_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More files than a code folder may have are refused as soon as the limit is passed, whatever else the drop
    holds."""
    for n in range(2500):
        world.blobs.put("drops", f"mnist/a/{n:04}", HELLO)
    place, seen = Place("drops", "mnist/a/"), 0
    list_all = world.blobs.list

    def counted(place: Place) -> Iterator[Blob]:
        nonlocal seen
        for seen, blob in enumerate(list_all(place), 1):  # noqa: B007
            yield blob

    monkeypatch.setattr(world.blobs, "list", counted)
    with pytest.raises(Impossible, match="more than 2,000 files"):
        uploads.collect(world.system, place, "./", 200)
    assert seen == 2001


def test_a_drop_may_bring_code_only_where_its_route_lets_it(world: World) -> None:
    """On other routes the drop is rejected with the line, and nothing is copied."""
    world.system = replace(world.system, routes={"mnist": ROUTE})
    closed = drop(world, {"1.bin": b"1", "src/train.py": HELLO, "job.yaml": JOB})
    assert (closed.state, closed.code) == (DropState.REJECTED, "bad_job_file")
    assert "job.yaml line 1: code: a drop can't have its own on this route" in closed.why
    assert world.blobs.copied == []


def test_a_drop_with_code_can_be_checked_before_it_is_uploaded(world: World) -> None:
    """A route's check accepts a job file with code where drops may contain code, and refuses the job file
    elsewhere."""
    key, written = DropKey("mnist", "own"), {"code": "./src", "command": "x", "environment": "azureml:e:1"}
    assert route_problems(world.system, key, world.system.routes["mnist"], written)[1] == []
    (problem,) = route_problems(world.system, key, ROUTE, written)[1]
    assert "can't have its own on this route" in problem.message


ENVIRONMENTS: list[tuple[str, Any]] = [
    ("{image: i, conda_file: ./env/conda.yml}", {"image": "i", "conda_file": {"dependencies": ["pip"]}}),
    ("file:env/e.yml", {"image": "j", "conda_file": {"dependencies": ["pip"]}}),
    ("./env/e.yml", {"image": "j", "conda_file": {"dependencies": ["pip"]}}),
    ("{build: {path: env}}", {"build": {"path": place_text(upload.path(digest([
        file("conda.yml", b"dependencies: [pip]"), file("e.yml", b"$schema: s\nimage: j\nconda_file: conda.yml")])))}}),
    ("azureml:e:1", "azureml:e:1"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "environment"), ENVIRONMENTS)
def test_a_drop_brings_the_files_of_its_environment(world: World, said: str, environment: Any) -> None:
    """A conda file and an environment file that the job file names are read in; a build context is copied."""
    files = {"env/conda.yml": b"dependencies: [pip]", "env/e.yml": b"$schema: s\nimage: j\nconda_file: conda.yml"}
    closed = drop(world, {"1.bin": b"1", **files, "job.yaml": f"command: x\nenvironment: {said}\n".encode()})
    assert world.runs.get(closed.run).value.asked.request.environment == read_environment(environment), closed.why


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{image: i, conda_file: conda.yml}", "line 2: environment.conda_file: the drop has no file 'conda.yml'."),
        ("{image: i, conda_file: ../other/conda.yml}", "conda_file: The name '../other/conda.yml' can't be a file"),
        ("{image: i, conda_file: 1.bin}", "environment.conda_file: 1.bin does not contain a mapping."),
        ("file:/etc/passwd", "environment: the drop has no file 'etc/passwd'."),
        ("{build: {path: docker}}", "environment.build: There are no files to upload."),
        ("{build: {path: .}}", "environment.build: a drop can't have its own build context on this route"),
    ],
)
def test_an_environment_that_a_drop_can_not_bring_is_refused(world: World, said: str, why: str) -> None:
    """The refusal has the line and the file's problem; a build context needs a route that lets drops contain code."""
    if "on this route" in why:
        world.system = replace(world.system, routes={"mnist": ROUTE})
    closed = drop(world, {"1.bin": b"1", "job.yaml": f"command: x\nenvironment: {said}\n".encode()})
    assert (closed.state, closed.code) == (DropState.REJECTED, "bad_job_file")
    assert why in closed.why


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ({f"env/{n}.txt": b"x" for n in range(101)}, "The build context has 101 files with 0.00 MB; Azure ML takes"),
        ({"env/big.bin": b"x" * 1_000_001}, "1 files with 1.00 MB; Azure ML takes at most 100 files and 1 MB."),
    ],
)
def test_a_build_context_beyond_azures_limits_is_refused(world: World, context: dict[str, bytes], why: str) -> None:
    """This applies to drops and requests:
    https://learn.microsoft.com/azure/machine-learning/resource-limits-capacity."""
    closed = drop(world, {**context, "job.yaml": b"command: x\nenvironment: {build: {path: env}}\n"})
    assert (closed.state, closed.code) == (DropState.REJECTED, "bad_job_file")
    assert why in closed.why
    folder = upload.path(digest(file(name, data) for name, data in context.items()))
    place = world.jobs.place(folder)
    for name, data in context.items():
        world.blobs.put(place.container, place.prefix + name, data)
    with pytest.raises(Impossible, match=why.partition(";")[0]):
        uploads.check_complete(world.system, JobSpec(environment=Environment(context=folder)))


@pytest.mark.parametrize(("said", "_"), ENVIRONMENTS)
def test_an_environment_of_a_drop_can_be_checked_before_it_is_uploaded(world: World, said: str, _: Any) -> None:
    """A route's check accepts the name of an environment file without reading the file."""
    written = {"command": "x", "environment": yaml.safe_load(said)}
    assert route_problems(world.system, DropKey("mnist", "own"), world.system.routes["mnist"], written)[1] == []


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        ({"path": "azureml://datastores/workspaceblobstore/paths/mine/${{name}}/${{output_name}}/"}, None),
        ({"path": "azureml://datastores/${{default_datastore}}/paths/mine/model.pt", "type": "uri_file"}, None),
        ({"name": "model", "version": "3", "type": "mlflow_model"}, None),
        ({"path": "azureml://datastores/drops/paths/x/"}, "is in the drops container"),
        (
            {"path": "azureml://datastores/workspaceblobstore/paths/trainyard/run-1/models/"},
            "is in the folder of other runs",
        ),
        ({"path": "azureml://datastores/workspaceblobstore/paths/trainyard"}, "is in the folder of other runs"),
        ({"path": "azureml://datastores/workspaceblobstore/paths/a/../trainyard/x/"}, "can't be a file"),
        ({"path": "https://x/y"}, "must lie in a datastore"),
        ({"path": "azureml://datastores/x/paths/${{inputs.a}}/"}, "must lie in a datastore"),
    ],
)
def test_an_output_may_choose_its_place(output: dict[str, Any], fault: str | None) -> None:
    """An output may be anywhere in a datastore, with the run's name in its path, except among drops and in other
    runs' folders."""
    body = {"command": "x", "environment": "azureml:e:1", "compute": "azureml:cpu", "outputs": {"model": output}}
    built = build(JobOrder("run-0", "t", JobSpec(), Limits(), written=read_layer(body), defaults=Values("e")))
    assert [problem.message for problem in built.problems if fault is None or fault not in problem.message] == []
    if fault is None:
        assert built.job
        path = place_text(built.job.outputs["model"].path)
        assert path.endswith(("/mine/run-0/model/", "/mine/model.pt", "/trainyard/run-0/model/"))


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ({"type": "sweep"}, "is empty: name at least one parameter"),
        (
            {"type": "automl"},
            "'automl'; Trainyard runs command jobs, sweeps and pipelines. Submit a command job that trains",
        ),
        ({"jobs": {}}, "must be a mapping from names to steps"),
        ({"search_space": {}}, "is empty: name at least one parameter"),
    ],
)
def test_other_kinds_of_jobs_are_refused_by_name(written: dict[str, Any], why: str) -> None:
    """The refusal names the unsupported kind of job and the alternative; for an empty job, it names what is
    missing."""
    order = JobOrder("r", "t", JobSpec(), Limits(), written=read_layer(written))
    assert any(why in problem.message for problem in build(order).problems)


def test_a_serverless_job_runs_on_the_cluster_that_is_asked_for() -> None:
    """`--cluster` replaces compute, and keys that only serverless compute has are removed."""
    body = {
        "command": "x",
        "environment": "azureml:e:1",
        "queue_settings": {"job_tier": "spot"},
        "resources": {"instance_type": "Standard_NC6", "instance_count": 1},
    }
    order = JobOrder("r", "t", JobSpec(), Limits(), written=read_layer(body), defaults=Values("e"))
    built = build(replace(order, asked=Values(cluster="cpu")))
    assert (built.problems, built.job and document(built.job)["resources"]) == ((), {"instance_count": 1})
    assert built.job
    assert (built.job.cluster, built.job.restricted) == ("cpu", {})
    for nowhere in ({**body, "compute": "azureml:serverless"}, {**body, "compute": None}, body):
        job = build(replace(order, written=read_layer(nowhere), defaults=Values("e", "default"))).job
        assert job
        assert (job.cluster, job.restricted) == ("default", {})
    named = build(replace(order, written=read_layer({**body, "compute": "azureml:x"}), defaults=Values("e", "d"))).job
    assert named
    assert named.cluster == "x"


def test_a_serverless_job_in_a_drop_runs_on_the_routes_cluster() -> None:
    """A whole job published for serverless compute runs on the route's cluster; queue_settings stay where the route
    allows them."""

    def of_a_drop(written: dict[str, Any], limits: Limits) -> Built:
        template, defaults = JobSpec(command=read_command("y")), Values("e", "of-the-route")
        return build(JobOrder("r", "t", template, limits, written=read_layer(written), defaults=defaults))

    settings = {"queue_settings": {"job_tier": "spot"}, "resources": {"instance_type": "Standard_NC4as_T4_v3"}}
    whole = {"command": "x", "environment": "azureml:e:1", **settings}
    built = of_a_drop(whole, Limits())
    assert built.job
    assert (built.problems, built.job.cluster, built.job.restricted) == ((), "of-the-route", {})
    allowed = of_a_drop(whole, Limits(allow=frozenset({"queue_settings"}))).job
    assert allowed
    assert allowed.restricted == {"queue_settings": {"job_tier": "spot"}}
    assert [problem.path for problem in of_a_drop(settings, Limits()).problems] == ["queue_settings"]


def test_a_browser_gets_addresses_for_what_is_missing(world: World) -> None:
    """A file that the storage holds completely, and not older than the offered one, gets no address; the marker
    always gets one. A signed-in caller gets a header that records the drop's owner."""
    now, key = world.clock(), DropKey("mnist", "a")
    for name, content in (("same", HELLO), ("older", HELLO), ("shorter", b""), ("_SUCCESS", b"")):
        world.blobs.put("drops", f"mnist/a/{name}", content)
    later = now + timedelta(hours=1)
    offered = [Offered("same", len(HELLO), now), Offered("older", len(HELLO), later), Offered("new", 1, now)]
    offered += [Offered("shorter", 1, now), Offered("_SUCCESS", 0, now)]
    told = upload_addresses(world.system.routes, world.system.blobs, key, offered, "Ann Ö <ann@example.org>")
    assert told["headers"] == {"x-ms-meta-trainyard_owner": "Ann%20%C3%96%20%3Cann%40example.org%3E"}
    assert upload_addresses(world.system.routes, world.system.blobs, key, offered)["headers"] == {}
    assert [file["name"] for file in told["files"] if file["url"]] == ["older", "new", "shorter", "_SUCCESS"]
    with pytest.raises(Impossible, match="There is no route"):
        upload_addresses(world.system.routes, world.system.blobs, DropKey("minst", "a"), offered)
    with pytest.raises(Impossible, match="can't be a file"):
        upload_addresses(world.system.routes, world.system.blobs, key, [Offered("../x", 1, now)])


def test_a_snapshot_with_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    """The refusal names the link, which is neither followed nor silently omitted. A link to a file of the folder is
    that file."""
    secret = tmp_path / "secret.txt"
    secret.write_text("mine")
    folder = tmp_path / "trainers"
    folder.mkdir()
    (folder / "a.py").write_text("pass")
    (folder / "b.py").symlink_to("a.py")
    assert [file.name for file in snapshot_files(folder)] == ["a.py", "b.py"]
    for target in (secret, tmp_path, tmp_path / "nowhere"):
        (folder / "away").unlink(missing_ok=True)
        (folder / "away").symlink_to(target)
        with pytest.raises(BadInput, match="not point to a file in it: away"):
            snapshot_files(folder)
