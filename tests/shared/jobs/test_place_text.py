"""Storage paths and registered assets in Azure ML's spelling, parsed and written."""

import pytest

from shared.jobs.location import Asset, Location, Pattern, Placeholder, Where
from shared.jobs.readers.place_text import place_text, read_asset, read_output_place, read_place

WORKSPACE = "subscriptions/s-1/resourceGroups/g/workspaces/w"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("azureml://datastores/drops/paths/mnist/a/", Location("drops", "mnist/a/")),
        ("azureml://datastores/my-store/paths/", Location("my-store", "")),
        (f"azureml://{WORKSPACE}/datastores/d/paths/x", Location("d", "x", WORKSPACE)),
        ("azureml:iris:1", Asset("iris:1")),
        ("azureml:/subscriptions/s/codes/c/versions/1", Asset("/subscriptions/s/codes/c/versions/1")),
        ("azureml://registries/azureml/models/m/versions/1", Asset("//registries/azureml/models/m/versions/1")),
        ("./data", "./data"),
        ("https://example.org/a.csv", "https://example.org/a.csv"),
        ("azureml://datastores/d/paths/${{name}}", "azureml://datastores/d/paths/${{name}}"),
        ("", ""),
    ],
)
def test_a_place_is_read_and_written(text: str, place: Where) -> None:
    """Each text gives one value, and the value is written as the same text. An input's expression stays text."""
    assert read_place(text) == place
    assert place_text(place) == text


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("azureml://datastores/d/paths/mine/${{ name }}/${{output_name}}/", Location("d", "mine/run-0/model/")),
        ("azureml://datastores/${{default_datastore}}/paths/x", Location("workspaceblobstore", "x")),
    ],
)
def test_an_output_names_its_run(text: str, filled: Location) -> None:
    """Placeholders in an output's path are filled in when the job is built; until then they are written unchanged."""
    pattern = read_output_place(text)

    assert isinstance(pattern, Pattern)
    assert read_output_place(place_text(pattern)) == pattern
    values = {Placeholder.RUN: "run-0", Placeholder.OUTPUT: "model", Placeholder.DEFAULT_STORE: "workspaceblobstore"}
    assert pattern.filled(values) == filled


@pytest.mark.parametrize("text", ["azureml://datastores/d/paths/${{later}}", "${{name}}", "azureml:x:${{name}}"])
def test_an_output_with_another_expression_is_text(text: str) -> None:
    """A path with any other expression stays text, and the checks refuse it."""
    assert read_output_place(text) == text


def test_an_environment_is_registered_or_a_file() -> None:
    """Only Azure ML's prefix makes a name a registered asset."""
    assert read_asset("azureml:trainyard@latest") == Asset("trainyard@latest")
    assert read_asset("./environment.yml") == "./environment.yml"
