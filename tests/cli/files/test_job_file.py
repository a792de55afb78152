"""Job files of `submit --job`: valid values are sent unchanged, everything else is an error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.errors import CliError
from cli.files.job_file import DEEPEST, load

YAML = {
    "a: 1\nwhen: 2026-01-31\n": r"line 2: 2026-01-31 is read as a date; put it in quotes",
    "a: .inf\n": r"line 1: .inf is a number that JSON can't represent",
    "a: &x [1]\nb: *x\n": r"line 2: aliases \(\*x\) are not allowed",
    "a: &x\n  b: *x\n": r"line 2: aliases",  # a cycle
    "a: 1\nb: 2\na: 3\n": r"line 3: the key 'a' is there twice",
    "a: {b: 1, b: 2}\n": r"line 1: the key 'b' is there twice",
    "1: a\n": r"line 1: the key '1' is not text",
    "a: !!binary eA==\n": r"line 1: eA== is read as a bytes",
    "a: !!python/object:os.system x\n": r"could not determine a constructor",
    "? [a]\n: 1\n": r"line 1: the key",
    f"a: {'[' * (DEEPEST + 5)}{']' * (DEEPEST + 5)}\n": r"line 1: it is nested deeper than",
    "- a\n": r"does not contain a job",
    "": r"does not contain a job",
    "a: [\n": r"is not a valid job file",
}
JSON = {
    '{"a": 1, "a": 2}': r"the key 'a' is there twice",
    '{"a": Infinity}': r"Infinity is a number that JSON can't represent",
    '{"a": 1e999}': r"1e999 is a number that JSON can't represent",
    "[" * 100_000: r"is nested deeper|is not a valid job file",
    "[]": r"does not contain a job",
}


@pytest.mark.parametrize(("text", "why"), YAML.items(), ids=range(len(YAML)))
def test_yaml_that_cannot_be_sent(tmp_path: Path, text: str, why: str) -> None:
    """A date, an infinity, an alias and a repeated key are each refused once, with the line."""
    file = tmp_path / "job.yaml"
    file.write_text(text)
    with pytest.raises(CliError, match=why) as refused:
        load(file)
    assert str(refused.value).count("line") <= 1


@pytest.mark.parametrize(("text", "why"), JSON.items(), ids=range(len(JSON)))
def test_json_that_cannot_be_sent(tmp_path: Path, text: str, why: str) -> None:
    """The same values in JSON are refused with the key, because the JSON parser knows no line."""
    file = tmp_path / "job.json"
    file.write_text(text)
    with pytest.raises(CliError, match=why):
        load(file)


def test_a_job_is_what_the_file_says(tmp_path: Path) -> None:
    """Scalars keep their YAML types; quoted scalars stay text."""
    file = tmp_path / "job.yaml"
    file.write_text(
        "command: python x\nlimits: {timeout: 60}\ntags: {day: '2026-01-31', big: true, rate: 0.5, none: null}\n"
    )
    tags = {"day": "2026-01-31", "big": True, "rate": 0.5, "none": None}
    assert load(file) == {"command": "python x", "limits": {"timeout": 60}, "tags": tags}


@given(st.text(max_size=60))
def test_any_text_is_a_job_or_an_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """For any file, the result is a mapping or a CliError."""
    file = tmp_path_factory.mktemp("job") / "job.yaml"
    file.write_text(text, "utf-8")
    try:
        assert isinstance(load(file), dict)
    except CliError:
        return
