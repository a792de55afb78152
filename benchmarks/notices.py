"""Notices to an endpoint that fails half of the time: each event arrives, and only a lost answer causes a duplicate.

python3 trainyard.py bench notices                     1,000 events
python3 trainyard.py bench notices --events 10000 --seed 7

The app's own handlers and its own sender post to a real web server on this machine. The server answers a quarter of the
requests with 503, cuts off a fifth unread, and accepts a twentieth without sending the answer; it accepts the rest.
Records, queues and the clock are the fakes of the tests, so a delivery's 14 hours pass at once.
"""

from __future__ import annotations

import json
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks._options import options
from shared.adapters.outgoing.sending import NoticeSender
from shared.notices import deliver
from shared.notices.model import DeliveryState, Notice, NoticeKind
from shared.notices.subscribe import SubscriptionSpec, subscribe
from tests.fakes.world import World, trainers_folder

REFUSED, CUT, UNHEARD = 0.25, 0.45, 0.50  # upper bounds of the random number that decides each request


@dataclass
class Endpoint:
    """The deliveries that arrived: how often each id was accepted, and how often its answer was lost."""

    luck: random.Random
    taken: Counter[str] = field(default_factory=Counter)
    unheard: Counter[str] = field(default_factory=Counter)
    requests: int = 0


QUICK = 100


def main(argv: list[str] | None = None) -> int:
    parser = options(__doc__, f"{QUICK} events")
    parser.add_argument("--events", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the endpoint's luck (default 1)")
    asked = parser.parse_args(argv)
    found = measure(QUICK if asked.quick else asked.events, asked.seed)
    print(json.dumps(found, indent=None if asked.json else 2))
    return 0 if found["lost"] == found["twice_without_a_lost_answer"] == 0 else 1


def measure(events: int, seed: int) -> dict[str, Any]:
    endpoint = Endpoint(random.Random(seed))
    with tempfile.TemporaryDirectory() as folder, _served(endpoint) as address:
        world = World(trainers_folder(Path(folder)))
        world.sender = NoticeSender(None, inside=True)  # type: ignore[assignment]
        made = subscribe(world.system, world.post, SubscriptionSpec(["completed"], address))
        began = world.clock()
        for number in range(events):
            notice = Notice(f"e{number}", NoticeKind.COMPLETED, "A run completed.", began)
            deliver.begin(world.system.queues, world.post, made, notice)
        _deliver(world)
        rows = [row.value for row in world.notices.rows.values()]
    waited = sorted((row.done_at - began).total_seconds() for row in rows if row.done_at)
    again = {event: times - 1 for event, times in endpoint.taken.items() if times > 1}
    return {
        "events": events,
        "requests": endpoint.requests,
        "accepted": len(endpoint.taken),
        "lost": events - len(endpoint.taken),
        "given_up": sum(row.state is DeliveryState.GAVE_UP for row in rows),
        "twice_after_a_lost_answer": len(again),
        "twice_without_a_lost_answer": sum(times > endpoint.unheard[event] for event, times in again.items()),
        "most_tries": max(row.tries for row in rows),
        "seconds_until_delivered": {"p50": _share(waited, 0.5), "p95": _share(waited, 0.95), "last": waited[-1]},
    }


def _deliver(world: World) -> None:
    """Advance the clock until no delivery waits for its next try."""
    while waiting := world.queues.messages.get("background", []):
        world.clock.now = max(world.clock.now, min(message.visible_at for message in waiting))
        world.run_until_idle()


def _share(values: list[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)]


@contextmanager
def _served(endpoint: Endpoint) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            endpoint.requests += 1
            lot, event = endpoint.luck.random(), str(self.headers["webhook-id"])
            if REFUSED <= lot < CUT:
                self.close_connection = True
                return
            self.rfile.read(int(self.headers["content-length"]))
            if lot >= CUT:
                endpoint.taken[event] += 1
            if CUT <= lot < UNHEARD:
                endpoint.unheard[event] += 1
                self.close_connection = True
                return
            self.send_response(503 if lot < REFUSED else 204)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    raise SystemExit(main())
