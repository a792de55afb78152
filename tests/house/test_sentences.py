"""Code compares codes and fields. Sentences are for people, and no code searches in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FOLDERS = ("shared", "functions", "cli", "local", "trainers")

# Names of attributes, variables and keys that hold sentences.
SENTENCES = {"why", "whys", "reason", "reasons", "message", "messages", "error", "errors", "sentence", "sentences"}
SENTENCES |= {"words", "summary", "cause", "advice", "explanation", "detail", "findings", "data_note", "note", "exc"}
SEARCHES = {"startswith", "endswith", "find", "rfind", "index", "count", "removeprefix", "removesuffix"}
PATTERNS = {"search", "match", "fullmatch", "findall", "finditer"}

# The modules that may read a sentence, and the origin of the sentence.
READERS = {
    "shared/adapters/azureml/failures.py": "Azure's messages about failed jobs and allocations, each with its source",
    "shared/kernel/misfits.py": "msgspec's messages about values, which have no fields",
    "shared/runs/old_sentences.py": "sentences in rows of the version before, which had no field for the fact",
    "trainers/elastic/worker.py": "PyTorch's errors of gloo, which has no class of its own for a lost connection",
}
# Values that are no sentences, despite their names.
MAPPINGS = {
    "cli/show/trainer_help.py": {"words"},  # a list of command line arguments
    "shared/events/incoming.py": {"message"},  # the body of a queue message
    "shared/messages": {"message"},
    "shared/settled.py": {"message"},
}


def holds_a_sentence(node: ast.expr) -> str:
    """The name of the sentence that this expression reads, or ''. Looks through str(), .lower() and x[key]."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name if name in SENTENCES else ""
        case ast.Subscript(value=value, slice=ast.Constant(value=key)):
            return str(key) if key in SENTENCES else holds_a_sentence(value)
        case ast.Subscript(value=value):
            return holds_a_sentence(value)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return holds_a_sentence(inner)
        case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[ast.Constant(value=key), *_]):
            return str(key) if key in SENTENCES else ""
        case ast.Call(func=ast.Attribute(value=value)):
            return holds_a_sentence(value)
        case ast.BoolOp(values=values):
            return next(filter(None, map(holds_a_sentence, values)), "")
    return ""


def searched(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines that search in a sentence, with the sentence's name."""
    for node in ast.walk(tree):
        found = ""
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in SEARCHES:
                found = holds_a_sentence(value)
            case ast.Call(func=ast.Attribute(attr=attr), args=args) if attr in PATTERNS:
                found = next(filter(None, map(holds_a_sentence, args)), "")
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[inside]):
                text = isinstance(left, ast.Constant) and isinstance(left.value, str)
                found = holds_a_sentence(inside) if text else ""
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                named = any(isinstance(each, ast.Constant) and " " in str(each.value) for each in (left, right))
                found = (holds_a_sentence(left) or holds_a_sentence(right)) if named else ""
        if found and isinstance(node, ast.expr):
            yield node.lineno, found


def offences(path: Path) -> list[str]:
    place = path.relative_to(ROOT).as_posix()
    fine = set().union(*(names for start, names in MAPPINGS.items() if place.startswith(start)))
    if place in READERS:
        return []
    found = searched(ast.parse(path.read_text("utf-8"), place))
    return [f"{place}:{line} searches in {name}" for line, name in found if name not in fine]


def test_no_code_searches_in_a_sentence() -> None:
    """Code reads enums and fields. Only the readers named above read sentences, for the reasons given there."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert [line for path in files for line in offences(path)] == []


def test_the_readers_exist_and_read() -> None:
    """Each exception in the list is still needed."""
    for place in READERS:
        source = (ROOT / place).read_text("utf-8")
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
        reads = any(call.attr in SEARCHES | PATTERNS for call in calls) or " in str(" in source
        assert reads, place


def test_the_search_is_found_in_each_form() -> None:
    """The rule finds every form that the code once had: a prefix, a word in a sentence, a pattern, a whole
    sentence."""
    forms = """
run.cancel.why.startswith(LOST)
"evicted" in str(entry["what"]["why"])
PACKAGE_GONE.search(run.progress.reason)
"quota" not in words.lower()
re.search("user_logs", error)
member.why == "It lost its node and waits for a new one."
row.get("reason").endswith("given up.")
"""
    assert [line for line, _ in searched(ast.parse(forms))] == [2, 3, 4, 5, 6, 7, 8]
