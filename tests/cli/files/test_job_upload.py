"""The uploaded files of a folder, and the job that a folder makes."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer

from cli import __main__ as cli
from cli.errors import CliError
from cli.files import folder_job
from cli.files.component_upload import with_components_sent, with_job_sent
from cli.files.job_file import load
from cli.files.job_upload import Sender, sent_data, with_everything_sent
from cli.files.snapshot import snapshot


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_ignore_files_are_obeyed(tmp_path: Path) -> None:
    """.gitignore applies unless there is an .amlignore; version control and caches are never uploaded."""
    files = {"a.py": "", "data/x.csv": "", "keep.log": "", "lib/b.py": "", ".git/HEAD": "", "lib/__pycache__/b.pyc": ""}
    write(tmp_path, {**files, ".gitignore": "data/\n*.log\n!keep.log\n"})
    assert [file.name for file in snapshot(tmp_path)] == [".gitignore", "a.py", "keep.log", "lib/b.py"]
    write(tmp_path, {".amlignore": "lib\n.*ignore\n"})
    assert [file.name for file in snapshot(tmp_path)] == ["a.py", "data/x.csv", "keep.log"]


def test_nothing_to_send_is_an_error(tmp_path: Path) -> None:
    """A missing folder, or a folder that its ignore file empties, ends the command."""
    for source in (tmp_path / "nowhere", write(tmp_path / "all", {".amlignore": "*"})):
        with pytest.raises(CliError, match=r"does not exist|leaves all of them out"):
            snapshot(source)


class Api:
    """Answers that every file exists, and records the announced files."""

    def __init__(self) -> None:
        self.announced: list[list[str]] = []

    def post(self, *path: str, body: Any, repeats: bool = False) -> dict[str, Any]:
        self.announced.append([file["name"] for file in body["files"]])
        return {"path": f"azureml://sent/{len(self.announced)}/", "files": []}


def test_a_job_gets_what_it_names_on_this_machine(tmp_path: Path) -> None:
    """Code, local inputs and a build context become paths of uploads, and conda files become their content; the
    rest stays."""
    write(tmp_path, {"src/a.py": "", "d/x.csv": "", "one.csv": "", "docker/Dockerfile": "", "env/conda.yml": "a: 1"})
    api, remote = Api(), {"type": "uri_file", "path": "https://example.com/x"}
    inputs = {"folder": {"path": "./d"}, "file": {"type": "uri_file", "path": "one.csv"}, "far": remote, "n": 3}
    job = {"code": "./src", "inputs": inputs, "environment": {"image": "i", "conda_file": "env/conda.yml"}}
    sent = with_everything_sent(api, job, tmp_path, lambda _: None)  # type: ignore[arg-type]
    assert sent["code"] == "azureml://sent/1/"
    assert sent["environment"] == {"image": "i", "conda_file": {"a": 1}}
    assert sent["inputs"] == {
        "folder": {"path": "azureml://sent/2/"},
        "file": {"type": "uri_file", "path": "azureml://sent/3/one.csv"},
        "far": remote,
        "n": 3,
    }
    built = with_everything_sent(api, {"environment": {"build": {"path": "docker"}}}, tmp_path, lambda _: None)  # type: ignore[arg-type]
    assert built["environment"] == {"build": {"path": "azureml://sent/4/"}}
    assert api.announced == [["a.py"], ["x.csv"], ["one.csv"], ["Dockerfile"]]
    old = with_everything_sent(api, {"code": {"local_path": "src"}}, tmp_path, lambda _: None)  # type: ignore[arg-type]
    assert old["code"] == "azureml://sent/5/"  # the spelling of files from 2021
    built = with_everything_sent(api, {"environment": {"build": {"local_path": "docker"}}}, tmp_path, lambda _: None)  # type: ignore[arg-type]
    assert built["environment"] == {"build": {"path": "azureml://sent/6/"}}
    one = with_everything_sent(api, {"code": "src/a.py"}, tmp_path, lambda _: None)  # type: ignore[arg-type]
    assert one["code"] == "azureml://sent/7/"  # a folder with this file
    registered = {"code": "azureml:c:1", "environment": "azureml:e@latest"}
    assert with_everything_sent(api, registered, tmp_path, lambda _: None) == registered  # type: ignore[arg-type]


def test_a_parallel_step_gets_the_code_and_environment_of_its_task(tmp_path: Path) -> None:
    """Code and environment are found within the step, and in a component's file, whose paths are relative to that
    file."""
    task = "{code: ., entry_script: score.py, environment: {image: i, conda_file: conda.yml}}"
    write(
        tmp_path,
        {"steps/score.yml": f"{{type: parallel, task: {task}}}", "steps/conda.yml": "a: 1", "src/score.py": ""},
    )
    inline = {"type": "parallel", "task": {"code": "src", "entry_script": "score.py", "environment": "azureml:e:1"}}
    job = {"type": "pipeline", "jobs": {"inline": inline, "file": {"component": "./steps/score.yml"}}}
    api = Api()
    sent = with_components_sent(api, job, tmp_path, lambda _: None)["jobs"]  # type: ignore[arg-type]
    assert sent["inline"]["task"] == {**inline["task"], "code": "azureml://sent/1/"}  # type: ignore[dict-item]
    assert sent["file"]["component"]["task"] == {
        "code": "azureml://sent/2/",
        "entry_script": "score.py",
        "environment": {"image": "i", "conda_file": {"a": 1}},
    }
    assert api.announced == [["score.py"], ["conda.yml", "score.yml"]]


def test_a_pipeline_gets_its_components(tmp_path: Path) -> None:
    """Component files are read, in nested pipelines too, and files that they name are uploaded relative to the
    component file."""
    prepare = "{type: command, code: ../src, environment: {image: i, conda_file: conda.yml}, command: x}"
    within = "{type: pipeline, jobs: {prepare: {component: ./prepare.yml}, tune: {trial: file:prepare.yml}}}"
    write(
        tmp_path, {"steps/prepare.yml": prepare, "steps/within.yml": within, "steps/conda.yml": "a: 1", "src/a.py": ""}
    )
    job = {"type": "pipeline", "jobs": {"one": {"component": "steps/within.yml"}, "two": {"component": "azureml:c:1"}}}
    api = Api()
    sent = with_components_sent(api, job, tmp_path, lambda _: None)["jobs"]  # type: ignore[arg-type]
    prepared = {
        "type": "command",
        "code": "azureml://sent/1/",
        "environment": {"image": "i", "conda_file": {"a": 1}},
        "command": "x",
    }
    assert sent["two"] == {"component": "azureml:c:1"}
    steps = sent["one"]["component"]["jobs"]
    assert steps == {"prepare": {"component": prepared}, "tune": {"trial": {**prepared, "code": "azureml://sent/2/"}}}
    assert api.announced == [["a.py"], ["a.py"]]
    whole = with_job_sent(api, {"type": "pipeline", "component": "steps/within.yml"}, tmp_path, lambda _: None)  # type: ignore[arg-type]
    assert whole["component"]["jobs"]["prepare"] == {"component": {**prepared, "code": "azureml://sent/3/"}}
    with pytest.raises(CliError, match=r"component: .*no.yml can't be read"):
        with_components_sent(api, {"jobs": {"a": {"component": "./no.yml"}}}, tmp_path, lambda _: None)  # type: ignore[arg-type]
    write(tmp_path, {"loop.yml": "{jobs: {a: {component: ./loop.yml}}}"})
    with pytest.raises(CliError, match="more than 10 levels"):
        with_components_sent(api, {"jobs": {"a": {"component": "loop.yml"}}}, tmp_path, lambda _: None)  # type: ignore[arg-type]


def test_a_command_names_data_parameters_and_results() -> None:
    """{data} is the data, {lr} a parameter, {models} a result; braces that a shell reads stay."""
    command = "python t.py {data} {lr} {models} ${HOME} {a,b} {{x}}"
    job = folder_job.job_of(command, {"lr": 0.1}, True, "azureml:e:1")
    assert job["command"] == ("python t.py ${{inputs.data}} ${{inputs.lr}} ${{outputs.models}} ${HOME} {a,b} {{x}}")
    assert job["inputs"] == {"data": {"type": "uri_folder"}, "lr": 0.1}
    assert job["outputs"] == {"models": {"type": "uri_folder"}}
    assert job["environment"] == "azureml:e:1"
    with pytest.raises(typer.BadParameter, match="--data"):
        folder_job.job_of("python t.py {data}", {}, False, "")


@pytest.mark.parametrize(
    ("kind", "processes", "made"),
    [
        ("pytorch", 4, {"type": "pytorch", "process_count_per_instance": 4}),
        ("mpi", None, {"type": "mpi", "process_count_per_instance": 1}),
        ("tensorflow", 2, {"type": "tensorflow", "worker_count": 6}),
        ("ray", None, {"type": "ray"}),
        ("", None, None),
    ],
)
def test_a_folders_processes_are_spread(kind: str, processes: int | None, made: dict[str, Any] | None) -> None:
    """The distribution of a folder's job on three nodes; TensorFlow counts the workers of all nodes."""
    job = folder_job.job_of("python t.py", {}, False, "", folder_job.distribution(kind, processes, 3))

    assert job.get("distribution") == made


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["./x", "--command", "x", "--distribution", "nccl"], "choose pytorch, mpi, tensorflow, ray"),
        (["./x", "--command", "x", "--processes", "2"], "--processes needs --distribution"),
        (["./x", "--command", "x", "--processes", "2", "--distribution", "ray"], "--processes needs --distribution"),
        (["mnist", "--distribution", "pytorch"], "are for a folder"),
        (["./x"], "Say what to run in ./x"),
        (["nowhere", "--command", "x"], "there is no folder at 'nowhere'"),
        (["mnist", "--env", "pandas"], "are for a folder"),
        (["job.yml", "--template", "mnist"], "Give exactly one of"),
    ],
)
def test_words_that_name_no_one_thing(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    """An impossible submission is a usage error that says what to give, before any upload."""
    assert run("submit", *words, "--url", "http://127.0.0.1:9") == 2
    assert why in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_data_of_this_machine_are_sent(tmp_path: Path) -> None:
    """A local folder or file is uploaded and replaced by its path in storage. Other names stay, and a name that
    must be local has to exist."""
    write(tmp_path, {"points/a.csv": "1", "drops/mnist/1": "", "one.csv": "2"})

    def sent(data: str) -> str:
        return sent_data(Api(), data, lambda path: tmp_path / path, lambda _: None)  # type: ignore[arg-type]

    assert sent("./points") == sent("points") == "azureml://sent/1/"
    assert sent("one.csv") == "azureml://sent/1/one.csv"
    for named in ("", "drops/mnist/1", "workspaceblobstore/points", "azureml://datastores/a/paths/b/"):
        assert sent(named) == named
    with pytest.raises(CliError, match="there is no such folder or file"):
        sent("./nowhere")


class Refusing(BaseHTTPRequestHandler):
    """A storage account that refuses everything, and counts the requests."""

    server: Any
    code = "AuthenticationFailed"

    def do_PUT(self) -> None:
        self.server.sent += 1
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(403)
        self.send_header("x-ms-error-code", self.code)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class Faster(Refusing):
    """A storage account to which another upload of the same files was faster."""

    code = "UnauthorizedBlobOverwrite"


def test_two_uploads_of_the_same_files_at_once(tmp_path: Path) -> None:
    """The slower upload continues if the storage account has the file already; the API checks all files afterwards."""

    class Both(Api):
        def post(self, *path: str, body: Any, repeats: bool = False) -> dict[str, Any]:
            url = f"http://127.0.0.1:{storage.server_port}/x"
            missing = [] if getattr(storage, "sent", 0) else body["files"]
            return {"path": "azureml://x/", "files": [{"name": file["name"], "url": url} for file in missing]}

    write(tmp_path, {"train.py": "x"})
    with ThreadingHTTPServer(("127.0.0.1", 0), Faster) as storage:
        setattr(storage, "sent", 0)  # noqa: B010  # the handlers find it there
        threading.Thread(target=storage.serve_forever, args=(0.02,), daemon=True).start()
        assert Sender(Both(), lambda _: None).send(tmp_path, "code") == "azureml://x/"  # type: ignore[arg-type]
        storage.shutdown()


def test_the_first_refusal_ends_the_sending(tmp_path: Path) -> None:
    """Once the storage account refuses one of 200 files, only the uploads under way finish."""

    class Missing(Api):
        def post(self, *path: str, body: Any, repeats: bool = False) -> dict[str, Any]:
            url = f"http://127.0.0.1:{storage.server_port}/x"
            return {"path": "azureml://x/", "files": [{"name": file["name"], "url": url} for file in body["files"]]}

    write(tmp_path, {f"{number}.txt": "x" for number in range(200)})
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as storage:
        setattr(storage, "sent", 0)  # noqa: B010  # the handlers find it there
        threading.Thread(target=storage.serve_forever, args=(0.02,), daemon=True).start()
        with pytest.raises(CliError, match=r"refused it \(403\)"):
            Sender(Missing(), lambda _: None).send(tmp_path, "code")  # type: ignore[arg-type]
        storage.shutdown()
        assert storage.sent < 100  # type: ignore[attr-defined]


def test_what_the_system_refuses_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unreadable file ends the command with its name and the reason, without a traceback."""

    def refused() -> None:
        raise PermissionError(13, "Permission denied", "data/secret.bin")

    monkeypatch.setattr(cli, "_run", refused)
    assert cli.main() == 1
    assert capsys.readouterr().err == "trainyard: data/secret.bin: Permission denied.\n"


def test_a_saved_job_says_all_that_the_request_said(tmp_path: Path) -> None:
    """The saved file has data, experiment, tags, parameters, cluster, nodes and time; its paths are relative to its
    folder."""
    write(tmp_path, {"code/train.py": "", "code/conda.yml": ""})
    described = {"image": "i", "conda_file": "conda.yml"}
    job = folder_job.job_of("python train.py {data} {lr}", {"lr": 0.1}, True, described)
    request = {
        "data": "drops/mnist/x",
        "experiment": "e1",
        "tags": {"team": "vision", "project": "p"},
        "cluster": "cpu-cluster",
        "nodes": 2,
        "timeout_seconds": 60,
        "sweep": {"trials": 3, "metric": "accuracy"},
    }
    (tmp_path / "jobs").mkdir()
    folder_job.save(job, request, tmp_path / "code", tmp_path / "jobs" / "job.yml")
    saved = load(tmp_path / "jobs" / "job.yml")
    assert saved["inputs"] == {
        "data": {"type": "uri_folder", "path": "azureml://datastores/drops/paths/mnist/x"},
        "lr": 0.1,
    }
    assert (saved["code"], saved["environment"]["conda_file"]) == ("../code", "../code/conda.yml")
    assert folder_job.tags_of(saved) == request["tags"]
    assert saved["experiment_name"] == "e1"
    assert saved["sweep"] == request["sweep"]
    assert saved["tags"] == {"team": "vision", "project": "p"}
    assert (saved["compute"], saved["resources"], saved["limits"]) == (
        "azureml:cpu-cluster",
        {"instance_count": 2},
        {"timeout": 60},
    )
