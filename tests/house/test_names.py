"""Each class name of a product has one meaning, and names use the terms of the glossary. The tests read the source as
text and import nothing.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKERS = ("model_of", "defstruct")  # functions that return a class
FOLDERS = ("shared", "functions", "cli", "local", "trainers", "emulators/src")
EMULATORS = "emulators/src/emulators"
PRODUCTS = (  # a class name is defined once in each product
    "shared",
    "trainers/elastic",
    "trainers/data_checks",
    *(f"{EMULATORS}/{part}" for part in ("arm", "azureml", "eventgrid", "host", "storage", "tracking")),
)
OF_EACH_TRAINER = {"Settings", "Training"}  # each trainer extends the classes of trainers/training.py
FORBIDDEN = {  # words forbidden in names of classes, functions and modules, and the terms to use
    "aside": "poison",
    "go_on": "continue",
    "goes_on": "continue",
    "going_on": "at_once",
    "look": "check",
    "looked": "checked",
    "looks": "checks",
    "loose": "single",
    "purse": "admission",
    "settle": "end",
    "settled": "ended",
    "settles": "ends",
    "take": "add, count, handle or acquire",
    "taken": "evicted",
    "takes": "accepts",
    "tell": "notify, announce or print",
    "tells": "notifies",
    "told": "reported",
    "took": "duration",
    "wish": "spec",
}
ALLOWED = {
    "shared/models/file_content.py tell": "the method of a file in Python, which zipfile calls",
    "trainers/data_checks/archive.py tell": "the method of a file in Python, which tarfile calls",
}
OLD_PAGE_WORDS = {  # words forbidden in the page's texts, and the terms to use
    r"set aside": "poison",
    r"[Gg]o(?:es)? on": "continue",
    r"[Tt]old": "notified",
    r"[Tt]ake (?:it )?away": "remove",
    r"[Ss]ettle[sd]?": "end",
    r"[Yy]ou may look": "read",
    r"[Mm]end": "fix",
}


def classes(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each class, also of classes that a call makes, such as `X = model_of(...)`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Assign) and _makes_a_class(node.value):
            yield from ((node.lineno, target.id) for target in node.targets if isinstance(target, ast.Name))


def _makes_a_class(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in MAKERS


def repeated(files: dict[str, str]) -> list[str]:
    """The class names with several definitions, each with its places, in the texts of files by path."""
    places = defaultdict(list)
    for path, text in files.items():
        for line, name in classes(text):
            places[name].append(f"{path}:{line}")
    return sorted(f"{name}: {', '.join(found)}" for name, found in places.items() if len(found) > 1)


@pytest.mark.parametrize("product", PRODUCTS)
def test_each_class_of_a_product_has_a_name_of_its_own(product: str) -> None:
    """A search for a class name finds one class. An API model of a record is `<Record>Answer`."""
    assert repeated(texts((ROOT / product).rglob("*.py"))) == []


def test_a_trainer_names_its_classes_once() -> None:
    """Class names are unique among the modules that the trainers share, together with those of each trainer."""
    common = texts((ROOT / "trainers").glob("*.py"))
    trainers = [path.parent for path in (ROOT / "trainers").glob("*/job.yaml")]
    found = {folder.name: repeated(common | texts(folder.rglob("*.py"))) for folder in trainers}
    own = {name: [line for line in lines if line.split(":")[0] not in OF_EACH_TRAINER] for name, lines in found.items()}
    assert len(own) >= 5
    assert {name: lines for name, lines in own.items() if lines} == {}


def texts(paths: Iterable[Path]) -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(paths)}


def test_a_repeated_class_name_is_found() -> None:
    """Class statements, nested classes and generated models count; variables and calls of other functions do not."""
    files = {
        "a.py": "class Wish: ...\nclass Outer:\n    class Loss: ...\nUse = thing()\n",
        "b.py": "Wish = model_of(__name__, Other)\nLoss = msgspec.defstruct('Loss', [])\nUse = 3\n",
    }
    assert repeated(files) == ["Loss: a.py:3, b.py:2", "Wish: a.py:1, b.py:1"]


def names(path: Path) -> Iterator[str]:
    """Yield the name of the module, and the names of its classes and functions."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def forbidden(name: str) -> list[str]:
    """Return the forbidden words in a name, in CamelCase or with underscores."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return [word for word in FORBIDDEN if f"_{word}_" in f"_{text}_"]


def test_names_use_the_terms_of_the_glossary() -> None:
    """Classes, functions and modules are named with the field's words, which docs/architecture.md defines."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {
        f"{path.relative_to(ROOT)} {name}": [f"{word}: say {FORBIDDEN[word]}" for word in words]
        for path in paths
        for name in names(path)
        if (words := forbidden(name))
    }
    assert {name: words for name, words in found.items() if name not in ALLOWED} == {}
    assert sorted(ALLOWED.keys() - found.keys()) == [], "they are gone, so they need no exception"


def test_the_page_uses_the_words_of_the_field() -> None:
    """words.js contains all text that people read on the page."""
    text = (ROOT / "page" / "words.js").read_text("utf-8")
    assert {f"{word}: say {term}" for word, term in OLD_PAGE_WORDS.items() if re.search(rf"\b{word}\b", text)} == set()


@pytest.mark.parametrize("path", sorted((ROOT / "page").rglob("*.js*")), ids=lambda path: path.name)
def test_names_of_the_page_use_the_terms_of_the_glossary(path: Path) -> None:
    """The rule covers functions, classes, methods and constants of the page's sources; the bundle is built from
    them."""
    if path.suffix not in (".js", ".jsx") or {"bundle", "node_modules"} & {*path.parts}:
        return
    assert [name for name in page_names(path.read_text("utf-8")) if forbidden(name)] == []


def page_names(text: str) -> list[str]:
    """The names of functions, classes, constants and methods in a JavaScript module."""
    declared = re.findall(r"\b(?:function|class|const|let)\s+(\w+)", text)
    return declared + re.findall(r"^ +(?:async |get |static )*#?(\w+)\([^;]*\) \{$", text, re.MULTILINE)


def test_an_old_name_of_the_page_is_found() -> None:
    assert page_names("class Rows {\n  async look(signal) {\n  }\n}\nconst told = 1;\n") == ["Rows", "told", "look"]


def test_the_scaling_timer_is_not_called_sweep() -> None:
    """A sweep is a search over parameters. No module of the clusters or timers uses the word in a name."""
    paths = [*(ROOT / "shared" / "clusters").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    assert [f"{path.name} {name}" for path in paths for name in names(path) if "sweep" in name.lower()] == []


def test_a_forbidden_word_is_found_in_every_spelling() -> None:
    """Whole words count: `Outlook` and `mistake` are fine."""
    assert [forbidden(name) for name in ("look_at_pace", "ProjectPurse", "_told", "GoingOn", "set_aside")] == [
        ["look"],
        ["purse"],
        ["told"],
        ["going_on"],
        ["aside"],
    ]
    assert [forbidden(name) for name in ("Outlook", "mistake", "lookup")] == [[], [], []]
