"""Queues and list_keys of a PrefixStore around a store made in Python, which PyTorch does not ask (torch 2.9 to 2.14).

PrefixStore knows its prefix and does not tell it, but hands whole keys to `check`: so that is how it is learned.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from torch.distributed import PrefixStore, Store

_listening = threading.local()


def overheard(keys: list[bytes]) -> bool:
    """Whether a check is no question, but tells a prefix. A store's `check` is to ask this first, and say True then."""
    heard = getattr(_listening, "keys", None)
    if heard is not None:
        heard.extend(keys)
    return heard is not None


def teach(kind: type[Store]) -> None:
    """Let every PrefixStore around a store of this kind have queues and list_keys, as far as this PyTorch has them."""
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
