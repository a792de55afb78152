"""The cost of one operation of the storage account: wall time, and processor time of the service and of its client.

    python3 trainyard.py bench storage_services [--quick] [--side azurite|ours|both] [--queue N,N] ... [--json]

Each operation is done by two clients in turn: `raw` (http.client on one connection, under a shared access signature)
and `sdk` (Microsoft's packages). The number after the operation is the number of messages, rows or blobs that already
existed.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueMessage, QueueServiceClient

from benchmarks._options import options
from emulators.storage import services
from emulators.testing import azurite

ROUNDS = 60
TICK = os.sysconf("SC_CLK_TCK")
VERSION = {"x-ms-version": "2021-12-02"}
JSON = {**VERSION, "Accept": "application/json;odata=minimalmetadata", "Content-Type": "application/json"}
BATCH = {**VERSION, "Content-Type": "multipart/mixed; boundary=batch_1"}
TEXT = "<QueueMessage><MessageText>{}</MessageText></QueueMessage>".format("x" * 200)


class Server(Protocol):
    @property
    def connection_string(self) -> str: ...
    @property
    def pid(self) -> int: ...


@dataclass(frozen=True)
class Cost:
    """Milliseconds of one operation; `there` is the number of messages, rows or blobs that already existed."""

    side: str
    operation: str
    there: int
    client: str
    wall: float
    server_cpu: float
    client_cpu: float


class Raw:
    """Requests to one service on one connection, with one signature."""

    def __init__(self, endpoint: str, sas: str) -> None:
        url = urlsplit(endpoint)
        assert url.hostname is not None
        self._connection = http.client.HTTPConnection(url.hostname, url.port)
        self._path, self._sas = url.path, sas

    def __call__(self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None) -> bytes:
        target = f"{self._path}/{path}{'&' if '?' in path else '?'}{self._sas}"
        try:
            answer = self._ask(method, target, body, headers or VERSION)
        except ConnectionError:  # Azurite closes connections after 5 idle seconds
            self._connection.close()
            answer = self._ask(method, target, body, headers or VERSION)
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {content!r}")
        return content

    def _ask(self, method: str, target: str, body: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        self._connection.request(method, target, body.encode(), headers)
        return self._connection.getresponse()


def raw(server: Server, service: str) -> Raw:
    facts = dict(part.split("=", 1) for part in server.connection_string.split(";") if part)
    return Raw(facts[f"{service}Endpoint"], sas(facts["AccountName"], facts["AccountKey"]))


def sas(name: str, key: str) -> str:
    """Return an account's shared access signature for all three services and everything in them."""
    lines = [name, "rwdlacup", "bqt", "sco", "", "2099-01-01T00:00:00Z", "", "http,https", "2021-12-02", "", ""]
    digest = hmac.digest(base64.b64decode(key), "\n".join(lines).encode(), "sha256")
    text = "sv=2021-12-02&ss=bqt&srt=sco&sp=rwdlacup&se=2099-01-01T00%3A00%3A00Z&spr=http%2Chttps"
    return f"{text}&sig={quote(base64.b64encode(digest).decode(), safe='')}"


def cpu_seconds(pid: int) -> float:
    """Return the processor seconds that all threads of a process have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


@dataclass
class Meter:
    side: str
    server: Server
    costs: list[Cost]

    def __call__(self, operation: str, there: int, client: str, work: Callable[[int], object], rounds: int) -> None:
        """Do `work` several times, and record the mean cost of one time."""
        work(-1)
        wall, mine, theirs = time.perf_counter(), time.process_time(), cpu_seconds(self.server.pid)
        for number in range(rounds):
            work(number)
        spent = time.perf_counter() - wall, cpu_seconds(self.server.pid) - theirs, time.process_time() - mine
        cost = Cost(self.side, operation, there, client, *(round(1000 * one / rounds, 3) for one in spent))
        self.costs.append(cost)
        print(
            f"{cost.side:8} {cost.operation:28} {there:>9,} {client:4} {cost.wall:9.2f} {cost.server_cpu:9.2f} "
            f"{cost.client_cpu:9.2f}",
            flush=True,
        )


def queues(meter: Meter, sizes: list[int], rounds: int) -> None:
    send, there = raw(meter.server, "Queue"), 0
    send("PUT", "bench")
    with QueueServiceClient.from_connection_string(meter.server.connection_string) as service:
        client = service.get_queue_client("bench")
        for size in sizes:
            while there < size:
                send("POST", "bench/messages?visibilitytimeout=3600", TEXT)
                there += 1
            taken: list[tuple[str, str]] = []

            def get(_: int) -> None:
                text = send("GET", "bench/messages?visibilitytimeout=600").decode()
                taken.append((between(text, "MessageId"), between(text, "PopReceipt")))

            def delete(_: int) -> None:
                message, receipt = taken.pop()
                send("DELETE", f"bench/messages/{message}?popreceipt={quote(receipt, safe='')}")

            meter("queue put", size, "raw", lambda _: send("POST", "bench/messages", TEXT), rounds)
            meter("queue get", size, "raw", get, rounds)
            meter("queue delete", size, "raw", delete, rounds)
            meter("queue put", size, "sdk", lambda _: client.send_message("x" * 200), rounds)
            held: list[QueueMessage] = []
            meter("queue get", size, "sdk", lambda _: held.extend(client.receive_messages(max_messages=1)), rounds)
            meter("queue delete", size, "sdk", lambda _: client.delete_message(held.pop()), rounds)


def between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def tables(meter: Meter, sizes: list[int], rounds: int) -> None:
    send, there = raw(meter.server, "Table"), 0
    send("POST", "Tables", json.dumps({"TableName": "bench"}), JSON)
    with table_service(meter.server) as service:
        client = service.get_table_client("bench")
        for size in sizes:
            while there < size:
                if meter.side == "ours":
                    send("POST", "$batch", transaction(range(there, there + 100)), BATCH)
                else:  # Azurite accepts a transaction only in the package's format
                    client.submit_transaction([("upsert", row(there + number)) for number in range(100)])
                there += 100
            newest = "PartitionKey eq 'run' and RowKey ge 't!' and RowKey lt 't\"'"
            asked = f"bench()?$top=100&$filter={quote(newest)}"
            meter("table newest 100", size, "raw", lambda _: send("GET", asked, "", JSON), max(5, rounds // 6))
            meter("table get", size, "raw", lambda n: send("GET", one(n * 7 % size), "", JSON), rounds)
            meter("table insert", size, "raw", lambda n: send("POST", "bench", json.dumps(row(n, "r")), JSON), rounds)
            pages = client.query_entities(newest, results_per_page=100)
            meter("table newest 100", size, "sdk", lambda _: list(next(pages.by_page())), max(5, rounds // 6))
            meter("table get", size, "sdk", lambda n: client.get_entity("run", row(n * 7 % size)["RowKey"]), rounds)
            meter("table insert", size, "sdk", lambda n: client.create_entity(row(n, "s")), rounds)
            put = [("upsert", row(n, "b")) for n in range(3)]
            meter("table transaction of 3", size, "sdk", lambda _: client.submit_transaction(put), rounds)
            for prefix in "rs":
                for n in range(-1, rounds):
                    client.delete_entity("run", row(n, prefix)["RowKey"])


def table_service(server: Server) -> TableServiceClient:
    return TableServiceClient.from_connection_string(server.connection_string)


def row(number: int, prefix: str = "t") -> dict[str, str]:
    columns = {f"column{i}": f"value {number} of {i}" for i in range(12)}
    return {"PartitionKey": "run", "RowKey": f"{prefix}!{number + 1:012d}", **columns}


def transaction(numbers: range) -> str:
    """Return a change set that inserts these rows, because the package would take ten times as long."""
    head = "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    head += "POST http://localhost/devstoreaccount1/bench HTTP/1.1\r\nContent-Type: application/json\r\n"
    head += "Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n\r\n"
    parts = "".join(f"{head}{json.dumps(row(number))}\r\n" for number in numbers)
    start = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
    return f"{start}{parts}--changeset_1--\r\n--batch_1--\r\n"


def one(number: int) -> str:
    return f"bench(PartitionKey='run',RowKey='t%21{number + 1:012d}')"


def blobs(meter: Meter, sizes: list[int], rounds: int) -> None:
    send, there = raw(meter.server, "Blob"), 0
    send("PUT", "bench?restype=container")
    kind = {**VERSION, "x-ms-blob-type": "BlockBlob"}
    with BlobServiceClient.from_connection_string(meter.server.connection_string) as service:
        client = service.get_container_client("bench")
        for size in sizes:
            while there < size:
                send("PUT", f"bench/f{there:07d}", "x", kind)
                there += 1
            meter("blob put", size, "raw", lambda n: send("PUT", f"bench/r{n:07d}", "x", kind), rounds)
            asked = "bench?restype=container&comp=list&maxresults=5000"
            few = f"bench?restype=container&comp=list&prefix=f{size // 2:07d}"
            meter("blob list of 1", size, "raw", lambda _: send("GET", few), rounds)
            meter("blob get", size, "raw", lambda n: send("GET", f"bench/f{n * 7 % size:07d}"), rounds)
            meter("blob list of 5,000", size, "raw", lambda _: send("GET", asked), 5)
            meter("blob put", size, "sdk", lambda n: client.upload_blob(f"s{n:07d}", b"x", overwrite=True), rounds)
            listing = client.list_blobs(results_per_page=5000)
            meter("blob list of 5,000", size, "sdk", lambda _: list(next(listing.by_page())), 5)


@contextmanager
def started(side: str, home: Path) -> Iterator[Server]:
    with azurite.start(home / side) if side == "azurite" else services.start(home / side) as running:
        yield running


def main(argv: list[str]) -> None:
    parser = options(__doc__, "100 things of each kind, each operation 5 times")
    parser.add_argument("--side", choices=["azurite", "ours", "both"], default="both")
    for name, sizes in (("queue", "100,1000,10000"), ("rows", "1000,10000"), ("blobs", "1000,10000")):
        parser.add_argument(f"--{name}", default=sizes, help=f"numbers of things to have there (default {sizes})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each operation is done")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.queue = arguments.rows = arguments.blobs = "100"
        arguments.rounds = 5
    costs: list[Cost] = []
    sides = ["azurite", "ours"] if arguments.side == "both" else [arguments.side]
    print(f"{'side':8} {'operation':28} {'there':>9} {'by':4} {'wall ms':>9} {'server ms':>9} {'client ms':>9}")
    with tempfile.TemporaryDirectory() as home:
        for side in sides:
            with started(side, Path(home)) as server:
                meter = Meter(side, server, costs)
                for part, text in ((queues, arguments.queue), (tables, arguments.rows), (blobs, arguments.blobs)):
                    if text:
                        part(meter, [int(number) for number in text.split(",")], arguments.rounds)
    if arguments.json:
        print(json.dumps({"costs": [asdict(cost) for cost in costs]}))


if __name__ == "__main__":
    main(sys.argv[1:])
