"""Jobs read public addresses from a folder, without a network and with unchanged code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from emulator_tests.azureml.clouds import Cloud
from emulators.azureml.kernel.errors import DataError
from emulators.azureml.service.web_proxy import WebProxy, _pump
from emulators.azureml.storage.web_folder import WebFolder
from emulators.azureml.storage.web_inputs import copy_folder, reach_folder

FLOWERS = "sepal,petal\n5.1,1.4\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "web" / "data.example.org" / "sets").mkdir(parents=True)
    (tmp_path / "web" / "data.example.org" / "sets" / "my flowers.csv").write_text(FLOWERS)
    (tmp_path / "web" / "secret.txt").write_text("not to be read")
    return tmp_path / "web"


@pytest.fixture
def proxy(folder: Path) -> Iterator[WebProxy]:
    """A proxy in a thread, as in the control plane's loop. It leaves nothing behind when it ends."""
    left: set[asyncio.Task[Any]] = set()
    made, loop = WebProxy(WebFolder(folder), ""), asyncio.new_event_loop()
    up, end = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with made.running():
            up.set()
            await end.wait()
        left.update(asyncio.all_tasks() - {asyncio.current_task()})

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert up.wait(10)
    yield made
    loop.call_soon_threadsafe(end.set)
    thread.join()
    loop.close()
    assert not left


def get(proxy: WebProxy, url: str, tmp_path: Path, **kwargs: Any) -> requests.Response:
    bundle = tmp_path / "authority.pem"
    bundle.write_bytes(proxy.authority)
    proxies = {"http": proxy.url, "https": proxy.url}
    return requests.get(url, proxies=proxies, verify=str(bundle), timeout=10, **kwargs)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_host_of_the_folder_is_answered_from_it(proxy: WebProxy, tmp_path: Path, scheme: str) -> None:
    """Files in a host's folder are served with type and size. A missing file is a 404 with the folder's name."""
    found = get(proxy, f"{scheme}://data.example.org/sets/my%20flowers.csv?raw=1", tmp_path)
    assert (found.text, found.headers["Content-Type"]) == (FLOWERS, "text/csv")
    missing = get(proxy, f"{scheme}://data.example.org/sets/none.csv", tmp_path)
    assert missing.status_code == 404
    assert "web/data.example.org" in missing.text


def test_nothing_outside_of_the_hosts_folder_is_read(folder: Path, proxy: WebProxy, tmp_path: Path) -> None:
    """Neither dots, encoded or not, nor links lead out of the host's folder."""
    (folder / "data.example.org" / "link.txt").symlink_to(folder / "secret.txt")
    web = WebFolder(folder)
    for path in ("../secret.txt", "%2e%2e/secret.txt", "link.txt", "sets"):
        with pytest.raises(FileNotFoundError):
            web.file(f"https://data.example.org/{path}")
    assert not web.has("..")
    assert not web.has("")
    assert web.file("https://elsewhere.example.org/x") is None
    assert get(proxy, "http://data.example.org/%2e%2e/secret.txt", tmp_path).status_code == 404


def test_a_folder_of_the_host_is_copied_whole(folder: Path, tmp_path: Path) -> None:
    """A folder input from the web is the folder below its host in the web folder. Folders of other hosts can't be
    listed."""
    web, flowers = WebFolder(folder), "https://data.example.org/sets/"
    asyncio.run(copy_folder(flowers, tmp_path / "copy", "Input 'a'", web))
    assert (tmp_path / "copy" / "my flowers.csv").read_text() == FLOWERS
    for elsewhere in ("https://elsewhere.example.org/sets/", "https://data.example.org/none/", "https://x/../../"):
        with pytest.raises(DataError, match="only a single file"):
            asyncio.run(reach_folder(elsewhere, "Input 'a'", web))


def test_other_hosts_are_passed_on(proxy: WebProxy, tmp_path: Path) -> None:
    """Requests to a host without a folder are forwarded to the real server, without the proxy's secret."""
    seen: list[dict[str, str]] = []

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(dict(self.headers))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"from elsewhere " + self.path.encode())

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        found = get(proxy, f"http://localhost:{server.server_port}/x?y=1", tmp_path)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert found.text == "from elsewhere /x?y=1"
    assert not [name for name in seen[0] if name.lower().startswith("proxy-")]


def test_a_stranger_is_not_served(proxy: WebProxy) -> None:
    """A request without the jobs' secret is a 407."""
    stranger = {"http": f"http://127.0.0.1:{proxy.port}"}
    assert requests.get("http://data.example.org/x", proxies=stranger, timeout=10).status_code == 407


def test_a_job_reads_the_web_offline(own_cloud: Callable[..., Cloud], folder: Path) -> None:
    """A job reads a web address as an input, and in its own code with Python's standard library."""
    cloud = own_cloud(web=str(folder))
    url = "https://data.example.org/sets/my%20flowers.csv"
    code = f"import urllib.request; print(urllib.request.urlopen('{url}').read())"
    inputs = {"flowers": {"jobInputType": "uri_file", "uri": url}}
    cloud.submit("reads-the-web", "cpu-cluster", f'cat "${{{{inputs.flowers}}}}"; python -c "{code}"', inputs=inputs)
    assert cloud.wait("reads-the-web")["status"] == "Completed", cloud.details("reads-the-web")["error"]
    assert cloud.log("reads-the-web") == f"{FLOWERS}{FLOWERS.encode()!r}\n"
    missing = {"flowers": {**inputs["flowers"], "uri": "https://data.example.org/none.csv"}}
    with pytest.raises(AssertionError, match=r"web/data\.example\.org answers for it, and has no /none\.csv"):
        cloud.submit("reads-nothing", "cpu-cluster", "cat ${{inputs.flowers}}", inputs=missing)


def test_the_end_closes_open_connections(folder: Path) -> None:
    """Stopping the proxy disconnects a silent client and leaves no task behind."""

    async def open_one_and_end() -> tuple[bytes, set[asyncio.Task[Any]]]:
        made = WebProxy(WebFolder(folder), "")
        async with made.running():
            reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
            while len(asyncio.all_tasks()) < 2:
                await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return answer, left

    assert asyncio.run(open_one_and_end()) == (b"", set())


class Lost:
    """A connection that the other side has reset. asyncio logs each write to it and raises no error."""

    writes = 0

    def is_closing(self) -> bool:
        return True

    def write(self, _: bytes) -> None:
        self.writes += 1

    async def drain(self) -> None:
        """Return at once, because a lost connection never waits."""

    def can_write_eof(self) -> bool:
        return False


def test_nothing_is_written_to_a_lost_connection() -> None:
    """A download whose client was killed does not fill the log with "socket.send() raised exception"."""
    lost: Any = Lost()

    async def download() -> None:
        source = asyncio.StreamReader()
        source.feed_data(bytes(1_000_000))
        source.feed_eof()
        await _pump(source, lost)

    asyncio.run(download())
    assert lost.writes == 0
