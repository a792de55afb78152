"""The help of `submit TRAINER --help`: the parameters of the trainer, below the help of the command."""

from __future__ import annotations

from typing import Any

import typer.core

from ..errors import CliError
from ..session import Session
from ..terminal_text import visible

LONGEST = 60  # characters of a parameter's choices


class SubmitCommand(typer.core.TyperCommand):
    """The command `submit`. Its help lists a trainer's parameters if the arguments name the trainer."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["submit"] = list(args)
        return super().parse_args(ctx, args)

    def get_help(self, ctx: Any) -> str:
        words = ctx.meta.get("submit", [])
        trainer = words[0] if words and not words[0].startswith("-") else ""
        own = super().get_help(ctx)
        return f"{own}\n\n{visible(_of_trainer(trainer, words))}" if trainer else own


def _of_trainer(name: str, words: list[str]) -> str:
    try:
        trainers = Session(_option(words, "--url"), _option(words, "--profile"), as_json=False).api.get("trainers")
    except CliError as exc:
        return f"The parameters of {name} can't be read: {exc}"
    match = next((trainer for trainer in trainers if trainer["trainer"] == name), None)
    if match is None:
        return f"There is no trainer {name!r}; there are: {', '.join(trainer['trainer'] for trainer in trainers)}."
    return parameters_table(match)


def parameters_table(trainer: dict[str, Any]) -> str:
    """Return one line for each parameter: name, default, description, and allowed values."""
    properties = trainer["parameters"]["properties"]
    names = {name: f"-p {name}={_plain(schema.get('default'))}" for name, schema in properties.items()}
    width = max(map(len, names.values()), default=0)
    lines = [f"  {names[name]:<{width}}  {_words(schema)}" for name, schema in properties.items()]
    return "\n".join([f"Parameters of {trainer['trainer']} ({trainer['description']}), with their defaults:", *lines])


def _words(schema: dict[str, Any]) -> str:
    values = allowed(schema)
    return f"{schema['description']}; {values}" if schema.get("description") else values


def allowed(schema: dict[str, Any]) -> str:
    """Return the allowed values of a parameter in words: `integer, from 1`, `adamw or sgd`."""
    if choices := schema.get("enum"):
        listed = " or ".join(map(str, choices))
        return listed if len(listed) <= LONGEST else f"one of {len(choices)}, such as {choices[0]} or {choices[-1]}"
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    bounds = (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"), ("exclusiveMaximum", "below"))
    limits = [f"{word} {schema[key]:g}" for key, word in bounds if key in schema]
    auto = " or auto" if schema.get("pattern") == "^auto$" else ""
    return " ".join([kinds[0], *limits]) + auto


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _option(words: list[str], name: str) -> str:
    for at, word in enumerate(words):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and at + 1 < len(words):
            return words[at + 1]
    return ""
