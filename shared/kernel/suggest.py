""" "Did you mean": suggest the nearest existing name. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from shared.kernel.errors import Impossible

MOST_SHOWN = 20
LONGEST = 80  # characters of a name that are compared and shown


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return the probably intended choice, or ''."""
    import difflib  # imported here because only mistakes need it

    matches = difflib.get_close_matches(name[:LONGEST].lower(), list(choices), n=1, cutoff=0.6)
    return matches[0] if matches else ""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ` Did you mean 'trees'?` if a choice is near, else ''."""
    near = nearest(name, choices)
    return f" Did you mean {near!r}?" if near else ""


def there_are(choices: Iterable[str]) -> str:
    """Return `a, b, c`, shortened for many choices; `none` without choices."""
    names = sorted(choices)
    rest = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + rest or "none"


def chosen(what: str, name: str, choices: Iterable[str]) -> str:
    """Return the name if the choices contain it. Raises Impossible with the nearest choice and code
    `unknown_<what>`.
    """
    names = sorted(choices)
    if name not in names:
        near = did_you_mean(name, names)
        raise Impossible(f"There is no {what} {name!r}.{near} There are: {there_are(names)}.", f"unknown_{what}")
    return name
