"""Adds queues and list_keys to a PrefixStore around a store written in Python; PyTorch does not forward them (torch 2.9
to 2.14).

A PrefixStore does not reveal its prefix, but it passes whole keys to `check`. This module learns the prefix from such a
call.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from torch.distributed import PrefixStore, Store

_listening = threading.local()


def overheard(keys: list[bytes]) -> bool:
    """Return whether a call of `check` is not a question but reveals a prefix. A store's `check` must call this
    function first, and return True if it returns True."""
    heard = getattr(_listening, "keys", None)
    if heard is not None:
        heard.extend(keys)
    return heard is not None


def teach(kind: type[Store]) -> None:
    """Give queues and list_keys to every PrefixStore around a store of this type, as far as this PyTorch version
    has them."""
    for name in ("queue_push", "queue_pop", "queue_len"):
        if original := getattr(PrefixStore, name, None):
            setattr(PrefixStore, name, _with_key(kind, name, original))
    if listing := getattr(PrefixStore, "list_keys", None):  # torch 2.9 has none
        setattr(PrefixStore, "list_keys", _listing(kind, listing))  # noqa: B010 (mypy forbids the other way)


def _with_key(kind: type[Store], name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: PrefixStore, key: str, *arguments: Any, **named: Any) -> Any:
        inner = _innermost(self)
        if not isinstance(inner, kind):
            return original(self, key, *arguments, **named)
        return getattr(inner, name)(_prefix(self) + key.encode(), *arguments, **named)

    return method


def _listing(kind: type[Store], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def list_keys(self: PrefixStore) -> Any:
        inner = _innermost(self)
        if not isinstance(inner, kind):
            return original(self)
        prefix = _prefix(self).decode()
        return [key.removeprefix(prefix) for key in inner.list_keys() if key.startswith(prefix)]

    return list_keys


def _innermost(store: Store) -> Any:
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store


def _prefix(store: PrefixStore) -> bytes:
    heard: list[bytes] = []
    _listening.keys = heard
    try:
        store.check([""])
    finally:
        _listening.keys = None
    return bytes(heard[0])
