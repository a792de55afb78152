"""What the host refuses at start. The host ignores nothing silently."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulators.host import functions
from emulators.host.config import Config, HostJson, load_local_settings
from emulators.host.errors import Refused
from emulators.host.worker.backend import Indexed, RetryPolicy
from emulators.host.worker.direct import DirectBackend
from emulators.host.worker.ms_runtime import RuntimeBackend

SETTINGS = {"AzureWebJobsStorage": "UseDevelopmentStorage=true", "ByName__queueServiceUri": "https://x"}
HTTP_OUT = {"type": "http", "name": "$return", "direction": "OUT"}
RETRY = RetryPolicy("fixed_delay", 3)


def function(name: str, *bindings: dict[str, Any], retry: RetryPolicy | None = None) -> Indexed:
    full = [{"direction": "IN", "name": "arg", **binding} for binding in bindings]
    return Indexed(name, tuple(json.dumps(binding) for binding in full), retry)


def http(name: str, **trigger: object) -> Indexed:
    return function(name, {"type": "httpTrigger", **trigger}, HTTP_OUT)


def queue(**trigger: object) -> Indexed:
    return function("f", {"type": "queueTrigger", "queueName": "work", "connection": "", **trigger})


def timer(schedule: str, **trigger: object) -> Indexed:
    return function("f", {"type": "timerTrigger", "schedule": schedule, **trigger})


def refusal(*indexed: Indexed, settings: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(Refused) as refused:
        functions.read(indexed, HostJson(), SETTINGS if settings is None else settings)
    return refused.value.reasons


@pytest.mark.parametrize(
    ("indexed", "reason"),
    [
        (function("f", {"type": "blobTrigger"}), "trigger type 'blobTrigger' is not supported here"),
        (function("f", {"type": "queue", "direction": "OUT"}), "it has 0 triggers"),
        (function("f", {"type": "httpTrigger"}, {"type": "table"}), "input binding 'arg' of type 'table'"),
        (
            function("f", {"type": "httpTrigger"}, {"type": "blob", "name": "out", "direction": "OUT"}),
            "output binding 'out' of type 'blob'",
        ),
        (function("f", {"type": "eventGridTrigger"}, HTTP_OUT), "output binding '$return' of type 'http'"),
        (queue(connection="Missing"), "connection 'Missing' is not set"),
        (queue(connection="ByName"), "connection 'ByName' is an identity-based one (ByName__queueServiceUri)"),
        (queue(queueName="Not_A_Queue"), "queueName 'Not_A_Queue' is not a queue name"),
        (queue(queueName="%NOT_SET%"), "queueName='%NOT_SET%' needs the setting NOT_SET"),
        (queue(queueName="{name}"), "queueName '{name}' is not a queue name"),
        (timer("0 0 0 L * *"), "schedule '0 0 0 L * *': 'L' is not understood in the field day"),
        (timer("0 0 0 31 2 *"), "schedule '0 0 0 31 2 *': no date matches it"),
        (function("f", {"type": "eventGridTrigger"}, retry=RETRY), "retry='fixed_delay' on a EventGridTrigger"),
        (
            function("f", {"type": "queueTrigger", "queueName": "work"}, retry=RETRY),
            "retry='fixed_delay' on a QueueTrigger",
        ),
        (http("f", route="admin/things"), "route 'admin/things' begins with admin or runtime"),
        (http("f", route="{id:datetime}"), "route constraint 'datetime' is not supported"),
        (http("f", authLevel="user"), "authLevel 'user' is unknown"),
        (http("1st"), "the name must be a letter"),
        (http("Host"), "the name must be a letter"),
    ],
)
def test_a_binding_that_is_not_supported(indexed: Any, reason: str) -> None:
    """The only problem names the function and the value."""
    (said,) = refusal(indexed)
    assert said.startswith(f"function {indexed.name}: ")
    assert reason in said


def test_all_reasons_come_at_once() -> None:
    """All problems of an app are reported together, one per line."""
    said = refusal(http("a", route="x"), http("b", route="x"), http("c", authLevel="?"), queue(connection="No"))
    assert [line.split(":")[0] for line in said] == ["function c", "function f", "function b"]


def test_two_functions_on_one_route() -> None:
    """Two functions with equal templates and a shared method conflict, whatever their parameters are called."""
    (said,) = refusal(http("one", route="a/{b}"), http("two", route="A/{c}", methods=["GET"]))
    assert said == "function two: route 'api/A/{c}' is that of function one"
    apart = (http("one", route="a", methods=["GET"]), http("two", route="a", methods=["POST"]))
    assert len(functions.read(apart, HostJson(), SETTINGS)) == 2


def test_names_differ_in_more_than_case() -> None:
    """Two function names that differ only in case are refused, because Azure ignores the case."""
    assert refusal(http("Same"), http("same", route="other")) == [
        "function same: another function has this name (case does not count)"
    ]


def test_timers_need_storage_and_utc() -> None:
    """Timers need AzureWebJobsStorage for status and lease. A time zone other than UTC is refused, because the
    timer would fire at other times here."""
    assert "AzureWebJobsStorage" in refusal(timer("0 0 0 * * *"), settings={})[0]
    zoned = {**SETTINGS, "WEBSITE_TIME_ZONE": "Europe/Berlin"}
    assert "WEBSITE_TIME_ZONE='Europe/Berlin'" in refusal(timer("0 0 0 * * *"), settings=zoned)[0]


@pytest.mark.parametrize("setting", ["AzureWebJobs.f.Disabled", "AzureWebJobs__f__Disabled"])
def test_a_disabled_function_is_left_out(setting: str) -> None:
    """A disabled function is ignored completely, including its problems."""
    assert functions.read([queue(connection="Missing")], HostJson(), {setting: "True"}) == []


def test_a_host_of_flex_consumption_runs_its_group() -> None:
    """The group `http` has the HTTP functions. Each queue function and each timer is its own group."""
    app = [http("page"), function("event", {"type": "eventGridTrigger"}), queue(), timer("0 0 0 * * *")]
    app[3] = Indexed("clock", app[3].raw_bindings)

    def names(**settings: str) -> list[str]:
        return [each.name for each in functions.read(app, HostJson(), {**SETTINGS, **settings})]

    flex = {"WEBSITE_SKU": "FlexConsumption"}
    assert names(**flex, FUNCTIONS_TARGET_GROUP="http") == ["page", "event"]
    assert names(**flex, FUNCTIONS_TARGET_GROUP="function:f") == ["f"]
    assert names(**flex, FUNCTIONS_TARGET_GROUP="function:clock") == ["clock"]
    assert names(FUNCTIONS_TARGET_GROUP="http") == names(**flex) == ["page", "event", "f", "clock"]


def test_settings_are_put_into_bindings() -> None:
    """%NAME% is replaced by the setting. `connection` may omit the prefix AzureWebJobs."""
    settings = {"NAME": "a-queue", "AzureWebJobsOther": "the-string"}
    (read,) = functions.read([queue(queueName="%NAME%", connection="Other")], HostJson(), settings)
    assert read.trigger == functions.QueueTrigger("arg", "a-queue", "the-string")
    assert "the-string" not in repr(read)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, 'version=None must be "2.0"'),
        ({"functionTimeout": "soon"}, "'soon' is not a time span"),
        ({"extensions": {"queues": {"batchSize": 33}}}, "batchSize=33 must be a number from 1 to 32"),
        ({"extensions": {"queues": {"batchSize": "4"}}}, "batchSize='4' must be a number"),
        ({"extensions": {"queues": {"maxPollingInterval": "00:00:00.050"}}}, "maxPollingInterval=0:00:00.050000"),
        ({"extensions": {"queues": {"messageEncoding": "utf8"}}}, "messageEncoding='utf8' must be base64 or none"),
        ({"extensions": {"queues": {"maxDequeCount": 5}}}, "unknown keys ['maxDequeCount']"),
    ],
)
def test_a_bad_host_json(tmp_path: Path, content: dict[str, Any], reason: str) -> None:
    """The message has the file, the key and the value."""
    version = {"version": "2.0"} if content else {}
    (tmp_path / "host.json").write_text(json.dumps({**version, **content}))
    with pytest.raises(Refused, match=re.escape(reason)):
        HostJson.read(tmp_path)


def test_host_json_says_what_it_ignores(tmp_path: Path) -> None:
    """A section without a meaning here is not an error, but the host names it."""
    content = {
        "version": "2.0",
        "concurrency": {},
        "logging": {},
        "extensions": {"blobs": {}, "http": {"routePrefix": ""}},
    }
    (tmp_path / "host.json").write_text(json.dumps(content))
    read = HostJson.read(tmp_path)
    assert (read.ignored, read.route_prefix) == (("concurrency", "extensions.blobs"), "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, "the key app is missing"),
        ({"app": "nowhere"}, "holds no function_app.py"),
        ({"app": "APP", "prot": 1}, "unknown keys ['prot']"),
        ({"app": "APP", "backend": "other"}, "backend='other' is unknown; choose one of direct, runtime"),
        ({"app": "APP", "require_keys": True}, "require_keys=true needs keys.master"),
        ({"app": "APP", "invisibility_seconds": 1}, "invisibility_seconds=1"),
    ],
)
def test_a_bad_configuration(tmp_path: Path, content: dict[str, Any], reason: str) -> None:
    """The message has the key and the value."""
    (tmp_path / "function_app.py").touch()
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: str(tmp_path) if value == "APP" else value for key, value in content.items()}))
    with pytest.raises(Refused, match=re.escape(reason)):
        Config.read(path)


def write_app(folder: Path, source: str) -> None:
    (folder / "function_app.py").write_text("import azure.functions as func\napp = func.FunctionApp()\n" + source)
    (folder / "host.json").write_text('{"version": "2.0"}')


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("alias = app", "2 top-level names are a FunctionApp; exactly one must be"),
        (
            "@app.route('x')\ndef f(request: func.HttpRequest, other: str) -> str: ...",
            "function f: parameters without a binding: ['other', 'request']; bindings without a parameter: ['req']",
        ),
        (
            "@app.queue_trigger('msg', 'work', 'X')\ndef f(msg: func.TimerRequest) -> None: ...",
            "function f: the annotation <class 'azure.functions._abc.TimerRequest'> of msg does not fit queueTrigger",
        ),
        (
            "@app.route('x')\ndef f(req: func.HttpRequest) -> 'func.HttpResponse | str': ...",
            "does not fit http",
        ),
    ],
)
def test_an_app_that_does_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str) -> None:
    """An app that Microsoft's indexer refuses is refused here with the reason."""
    write_app(tmp_path, source)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "function_app", raising=False)
    with pytest.raises(Refused, match=re.escape(reason)):
        asyncio.run(DirectBackend(tmp_path).start())
    sys.modules.pop("function_app", None)


def test_the_process_ends_before_it_serves(tmp_path: Path) -> None:
    """The process ends with status 1, without a ready line or a traceback, and with the reason on standard error."""
    write_app(tmp_path, "@app.queue_trigger('msg', 'work', 'X')\ndef f(msg: func.QueueMessage) -> None: ...")
    (tmp_path / "config.json").write_text(json.dumps({"app": str(tmp_path)}))
    argv = [sys.executable, "-m", "emulators.host", "--config", str(tmp_path / "config.json")]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "refused: function f: connection 'X' is not set" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("azure_functions_runtime") is not None, reason="the runtime is installed here"
)
def test_the_runtime_backend_needs_its_package(tmp_path: Path) -> None:
    """The message has the required package and the required Python."""
    with pytest.raises(Refused, match=r"needs azure-functions-runtime 1\.3 on Python 3\.13 or newer"):
        RuntimeBackend(tmp_path)


def test_local_settings_do_not_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of local.settings.json become settings, unless the environment already has them."""
    monkeypatch.setenv("HOST_TEST_ONE", "environment")
    monkeypatch.setenv("HOST_TEST_TWO", "")
    monkeypatch.delenv("HOST_TEST_TWO")
    values = {"HOST_TEST_ONE": "file", "HOST_TEST_TWO": 2}
    (tmp_path / "local.settings.json").write_text(json.dumps({"Values": values}))
    load_local_settings(tmp_path)
    assert (os.environ["HOST_TEST_ONE"], os.environ["HOST_TEST_TWO"]) == ("environment", "2")


def test_settings_go_over_host_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AzureFunctionsJobHost__ settings override single values of host.json, as in Azure."""
    (tmp_path / "host.json").write_text('{"version": "2.0", "extensions": {"queues": {"batchSize": 3}}}')
    monkeypatch.setenv("AzureFunctionsJobHost__extensions__queues__batchSize", "7")
    monkeypatch.setenv("AzureFunctionsJobHost__extensions__queues__maxPollingInterval", "00:00:02")
    read = HostJson.read(tmp_path)
    assert (read.queues.batch_size, read.queues.max_polling_interval) == (7, 2.0)
