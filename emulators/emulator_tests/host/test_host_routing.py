"""How route templates match, which one is preferred, and which are refused, as pure functions."""

from __future__ import annotations

import pytest

from emulators.host.http.routing import Route, Router, parse


@pytest.mark.parametrize(
    ("route", "path", "params"),
    [
        ("runs", "/api/runs", {}),
        ("runs", "/API/Runs/", {}),
        ("runs", "/api/runs/x", None),
        ("runs/{id}", "/api/runs/a%20b", {"id": "a b"}),
        ("runs/{id}", "/api/runs/a%2Fb", {"id": "a%2Fb"}),
        ("runs/{id}", "/api/runs/", None),
        ("runs/{id?}", "/api/runs", {}),
        ("runs/{id:int}", "/api/runs/12", {"id": "12"}),
        ("runs/{id:int}", "/api/runs/x", None),
        ("runs/{id:int:range(1,9)}", "/api/runs/12", None),
        (
            "runs/{id:guid}",
            "/api/runs/0f8fad5b-d9cb-469f-a165-70867728950e",
            {"id": "0f8fad5b-d9cb-469f-a165-70867728950e"},
        ),
        ("runs/{id:length(2,3)}", "/api/runs/abcd", None),
        ("runs/{ok:bool}", "/api/runs/TRUE", {"ok": "TRUE"}),
        ("files/{*path}", "/api/files/a/b.txt", {"path": "a/b.txt"}),
        ("files/{*path}", "/api/files", {}),
        ("v{version}/{name}.{ext}", "/api/v2/a.b.txt", {"version": "2", "name": "a", "ext": "b.txt"}),
        ("runs/{id}", "/api/runs/a+b", {"id": "a+b"}),
    ],
)
def test_match(route: str, path: str, params: dict[str, str]) -> None:
    """Templates match as in ASP.NET: decoded except for %2F, and case-insensitively."""
    assert parse(route, "api").match(path) == params


@pytest.mark.parametrize(
    "route",
    ["{id", "a}", "{id:regex(^x$)}", "{id:datetime}", "{id=5}", "{a?}/b", "{*rest}/b", "x{*rest}", "{id}/{id}", "{}"],
)
def test_what_is_refused(route: str) -> None:
    """A template that this host cannot match as Azure does is refused, with the part in the message."""
    with pytest.raises(ValueError, match="route"):
        parse(route)


def test_order() -> None:
    """The first matching route wins, even if a later route is more literal."""
    routes = ["runs/latest", "{a:int}/{b}", "runs/{b}", "{*rest}", "never/here"]
    router = Router(Route(parse(route), None, route) for route in routes)
    matches = [router.find("GET", path) for path in ("/runs/latest", "/runs/x", "/7/x", "/never/here", "/")]
    assert [match[0] for match in matches if match] == ["runs/latest", "runs/{b}", "{a:int}/{b}", "{*rest}", "{*rest}"]


def test_methods_are_part_of_the_route() -> None:
    """Two functions may share a template if their methods differ. A shared method, or no method, is an overlap."""
    get, post, every = (
        Route(parse("a/{b}"), frozenset({"GET"}), "get"),
        Route(parse("A/{other}"), frozenset({"POST"}), "post"),
        Route(parse("a/{b}"), None, "every"),
    )
    router = Router([get, post])
    assert [router.find(method, "/a/1") for method in ("POST", "PUT")] == [("post", {"other": "1"}), None]
    assert not get.overlaps(post)
    assert get.overlaps(every)
    assert not get.overlaps(Route(parse("a/{b:int}"), None, "constrained"))
