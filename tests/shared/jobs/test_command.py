"""A command consists of text and references; it is read from and written in Azure ML's form."""

import pytest

from shared.jobs.command import Command, OptionalPart, Reference, ReferenceGroup
from shared.jobs.layers import over
from shared.jobs.readers.expressions import command_text, read_command
from shared.jobs.spec import JobSpec, Layer

LR, MODEL = Reference(ReferenceGroup.INPUT, "lr"), Reference(ReferenceGroup.OUTPUT, "model")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("python train.py", ("python train.py",)),
        (
            "t --lr ${{inputs.lr}} -o ${{ outputs.model }}/x\n",
            ("t --lr ", LR, " -o ", MODEL, "/x\n"),
        ),
        ("t $[[--lr ${{inputs.lr}}]] end", ("t ", OptionalPart(("--lr ", LR)), " end")),
        ("t ${{search_space.lr}} ${{name}}", ("t ${{search_space.lr}} ${{name}}",)),
    ],
)
def test_a_command_is_text_and_references(text: str, parts: tuple[object, ...]) -> None:
    """A reference is a typed value, whatever its spaces. Any other expression stays text."""
    command = read_command(text)

    assert command.parts == parts
    assert read_command(command_text(command)) == command


def test_an_optional_part_needs_no_value() -> None:
    """`required` omits the references in an optional part."""
    assert list(read_command("t $[[--lr ${{inputs.lr}}]] ${{outputs.model}}").required) == [MODEL]


@pytest.mark.parametrize(
    ("text", "elastic"),
    [
        ("python -m elastic.launch mnist/train.py", True),
        ("torchrun train.py", False),
        ("python -m torchelastic.launch train.py", False),
        ("python -m elastic.launcher train.py", False),
    ],
)
def test_the_reader_says_whether_a_command_is_elastic(text: str, elastic: bool) -> None:
    """The launcher as a word of its own makes a command elastic; a longer word that contains it does not."""
    assert read_command(text).elastic is elastic


def test_a_command_over_an_elastic_one_is_not_elastic() -> None:
    """Whether a job is elastic depends on its command only: a job with its own command decides anew."""
    below, above = (Layer(JobSpec(command=read_command(text))) for text in ("python -m elastic.launch t.py", "mine"))

    assert over(below, Layer()).job.is_elastic
    assert not over(below, above).job.is_elastic


def test_words_are_added_after_one_space() -> None:
    """A command that ends with a reference or a line break accepts further words, and stays elastic."""
    assert read_command("t\n").followed_by("--lr ", LR) == Command(("t --lr ", LR))
    assert read_command("t ${{inputs.lr}}").followed_by("-v") == Command(("t ", LR, " -v"))
    assert Command(("t",), elastic=True).followed_by("-v").elastic
