"""A host that speaks gRPC with Microsoft's Python worker: `worker_host.py WORKER.py APP TABLE.json`.

The host starts the worker as the Functions host does, lets it index and load every function of the app, and runs the
invocations of the table in order, each row `{"function", "inputs": {name: {"kind", "content"}}}`. It prints the results
as JSON. Tested with the worker on PyPI, 1.1.9 of 2021. The protocol's classes come with the worker:
https://github.com/Azure/azure-functions-language-worker-protobuf
"""

from __future__ import annotations

import importlib
import json
import queue
import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0
MESSAGE_BYTES = 128 * 1024 * 1024


class WorkerFailed(Exception):
    """The worker failed at a step; the message has the worker's words."""


def protocol(worker: Path) -> tuple[Any, Any]:
    """The protocol's classes and the base class of a host, from the worker's folder."""
    sys.path.insert(0, str(worker.parent))
    for package in ("azure_functions_worker", "proxy_worker"):  # the second package from Python 3.13 on
        try:
            protos = importlib.import_module(f"{package}.protos")
        except ModuleNotFoundError:
            continue
        return protos, protos.FunctionRpcServicer
    raise WorkerFailed(f"there is no worker beside {worker}")


class Host:
    """One worker and its two streams of messages."""

    def __init__(self, worker: Path, app: Path) -> None:
        import grpc  # type: ignore[import-untyped]

        self.protos, base = protocol(worker)
        self._app, self._worker = app, worker
        self._to, self._from = queue.SimpleQueue[Any](), queue.SimpleQueue[Any]()
        self.said: list[str] = []
        outer = self

        class Streams(base):  # type: ignore[misc, valid-type]
            def EventStream(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
                futures.ThreadPoolExecutor(1).submit(outer._read, requests)
                yield from iter(outer._to.get, None)

        options = [("grpc.max_receive_message_length", MESSAGE_BYTES), ("grpc.max_send_message_length", MESSAGE_BYTES)]
        self._server = grpc.server(futures.ThreadPoolExecutor(2), options=options)
        add = getattr(self.protos, "add_FunctionRpcServicer_to_server", None)
        add = add or importlib.import_module(f"{base.__module__}").add_FunctionRpcServicer_to_server
        add(Streams(), self._server)
        self._port = self._server.add_insecure_port("127.0.0.1:0")

    def __enter__(self) -> Host:
        self._server.start()
        address = ("--host", "127.0.0.1", "--port", str(self._port), "--workerId", "w", "--requestId", "r")
        newer = (
            *("--functions-uri", f"http://127.0.0.1:{self._port}/", "--functions-worker-id", "w"),
            *("--functions-request-id", "r", "--functions-grpc-max-message-length", str(MESSAGE_BYTES)),
        )
        help_text = subprocess.run([sys.executable, self._worker, "--help"], capture_output=True, text=True).stdout
        more = newer if "--functions-uri" in help_text else ()
        argv = [sys.executable, str(self._worker), *address, "--grpcMaxMessageLength", str(MESSAGE_BYTES), *more]
        self._process = subprocess.Popen(argv, cwd=self._app, stdout=sys.stderr)
        self.answer("start_stream")
        return self

    def __exit__(self, *_: object) -> None:
        self._to.put(None)
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)
        self._server.stop(None)

    def _read(self, requests: Iterator[Any]) -> None:
        for message in requests:
            self._from.put(message)

    def ask(self, kind: str, answer: str, **content: Any) -> Any:
        """Send a message and return the answer of this kind. Raises WorkerFailed if the answer reports a failure."""
        request = getattr(self.protos, "".join(word.title() for word in kind.split("_")))(**content)
        self._to.put(self.protos.StreamingMessage(request_id="r", **{kind: request}))
        return self.answer(answer)

    def answer(self, kind: str) -> Any:
        while True:
            try:
                message = self._from.get(timeout=PATIENCE_SECONDS)
            except queue.Empty:
                raise WorkerFailed(
                    f"no {kind} came in {PATIENCE_SECONDS:.0f} s; it said:\n" + "\n".join(self.said)
                ) from None
            found = message.WhichOneof("content")
            if found == "rpc_log":
                self.said.append(message.rpc_log.message)
            elif found == kind:
                return getattr(message, kind)

    def start(self) -> list[Any]:
        """Start the worker and return the functions that it indexed, each loaded."""
        ready = self.ask(
            *("worker_init_request", "worker_init_response"),
            host_version="4.1037.0",
            function_app_directory=str(self._app),
            capabilities={},
        )
        check(ready.result, "worker_init_request")
        told = self.ask(
            *("functions_metadata_request", "function_metadata_response"), function_app_directory=str(self._app)
        )
        check(told.result, "functions_metadata_request")
        for found in told.function_metadata_results:
            asked = {"function_id": found.function_id, "metadata": found}
            check(self.ask("function_load_request", "function_load_response", **asked).result, found.name)
        return list(told.function_metadata_results)

    def invoke(self, function_id: str, row: dict[str, Any]) -> dict[str, Any]:
        inputs = [
            self.protos.ParameterBinding(name=name, data=self.value(entry)) for name, entry in row["inputs"].items()
        ]
        done = self.ask(
            *("invocation_request", "invocation_response"),
            invocation_id=row["function"],
            function_id=function_id,
            input_data=inputs,
            trigger_metadata={name: self.value(entry) for name, entry in row.get("metadata", {}).items()},
        )
        ok = done.result.status == self.protos.StatusResult.Success
        http = done.return_value.http
        return {"ok": ok, "error": done.result.exception.message, "status": http.status_code, "body": body(http.body)}

    def value(self, entry: dict[str, Any]) -> Any:
        content = entry["content"]
        if entry["kind"] != "http":
            return self.protos.TypedData(**{entry["kind"]: content})
        return self.protos.TypedData(http=self.protos.RpcHttp(method=content["method"], url=content["url"]))


def check(result: Any, what: str) -> None:
    if result.status != 1:  # StatusResult.Success
        raise WorkerFailed(f"{what}: {result.exception.message}\n{result.exception.stack_trace}")


def body(data: Any) -> str:
    found = data.WhichOneof("data")
    content = getattr(data, found) if found else ""
    return content.decode() if isinstance(content, bytes) else str(content)


def main() -> None:
    worker, app = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    table = json.loads(Path(sys.argv[3]).read_text())
    with Host(worker, app) as host:
        ids = {found.name: found.function_id for found in host.start()}
        outcomes = [host.invoke(ids[row["function"]], row) for row in table]
    sys.stdout.write(json.dumps({"functions": sorted(ids), "outcomes": outcomes}))


if __name__ == "__main__":
    main()
