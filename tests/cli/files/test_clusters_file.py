"""The clusters file: accepted content, differences from a workspace, and the resulting requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.errors import CliError
from cli.files import clusters_file
from cli.files.clusters_file import Declared


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clusters: [", "not valid YAML"),
        ("routes: {}", "one key, `clusters`"),
        ("clusters: {'-a': {size: S_D2, max: 1}}", "a letter first"),
        ("clusters: {ab: {size: S_D2, max: 1}}", "'ab': use 3 to 24 letters"),
        (f"clusters: {{{'a' * 25}: {{size: S_D2, max: 1}}}}", "use 3 to 24 letters"),
        ("clusters: {gpu: {max: 1}}", "with size and max"),
        ("clusters: {gpu: {size: S_D2, max: 1, disk: 2}}", "at most"),
        ("clusters: {gpu: {size: '../x', max: 1}}", "size is '../x'"),
        ("clusters: {gpu: {size: S_D2, max: 1, tier: spot}}", "choose low_priority or dedicated"),
        ("clusters: {gpu: {size: S_D2, max: 1, min: 2, pin: x}}", "from 0 to 1"),
        ("clusters: {gpu: {size: S_D2, max: 1, min: 1}}", "Give the reason in `pin`"),
        ("clusters: {gpu: {size: S_D2, max: 1, idle: soon}}", "auto, or from 60 s"),
        ("clusters: {gpu: {size: S_D2, max: 1, project: [a]}}", "printable"),
    ],
)
def test_a_file_that_can_not_be_is_refused(text: str, words: str) -> None:
    """The error names the cluster and the key, and gives the valid values."""
    with pytest.raises(CliError, match=words):
        clusters_file.read(text, "clusters.yaml")


def test_a_cluster_needs_size_and_max_alone() -> None:
    """The defaults are Spot machines, scaling to zero after 120 s idle, and no project."""
    (found,) = clusters_file.read("clusters: {gpu: {size: Standard_NC4as_T4_v3, max: 2}}", "f")
    assert found == Declared("gpu", "Standard_NC4as_T4_v3", 2, 0, "low_priority", 120, "", "")
    assert [c.idle for c in clusters_file.read("clusters: {a12: {size: S_D2, max: 1, idle: 2h}}", "f")] == [7200]


def applied(cluster: Declared, found: dict[str, Any] | None) -> dict[str, Any]:
    """The compute after its plan was applied, as Azure ML would show it."""
    steps = clusters_file.plan([cluster], {"c1": found} if found else {})
    if not steps:
        assert found is not None
        return found
    return clusters_file.body(
        steps[0], found, {"location": "west", "identity": {"type": "SystemAssigned", "principalId": "p"}}
    )


DECLARED = st.builds(
    Declared,
    st.just("c1"),
    st.just("Standard_D2s_v5"),
    st.integers(2, 4),
    st.integers(0, 2),
    st.just("dedicated"),
    st.sampled_from([None, 60, 7200]),
    st.sampled_from(["", "research"]),
    st.sampled_from(["", "the booth"]),
)


@given(DECLARED, DECLARED)
@settings(max_examples=60)
def test_what_was_applied_needs_no_further_step(first: Declared, second: Declared) -> None:
    """After `apply` the plan is empty, whatever was there before; settings that the file does not know stay
    unchanged."""
    made = applied(first, None)
    assert clusters_file.plan([first], {"c1": made}) == []
    made["tags"]["cost-center"] = "7"
    made["properties"]["properties"]["nodeStateCounts"] = {"idleNodeCount": 1}
    made["properties"]["description"] = "kept"
    after = applied(second, made)
    assert clusters_file.plan([second], {"c1": after}) == []
    assert after["tags"]["cost-center"] == "7"
    assert after["properties"]["description"] == "kept"


def test_an_idle_time_that_was_chosen_is_no_difference() -> None:
    """With `idle: auto` the sweeps choose a cluster's idle time; a plan leaves it, and other changes preserve it."""
    auto = Declared("c1", "Standard_D2s_v5", 2, idle=None)
    made = applied(auto, None)
    made["properties"]["properties"]["scaleSettings"]["nodeIdleTimeBeforeScaleDown"] = "PT83S"
    assert clusters_file.plan([auto], {"c1": made}) == []
    after = applied(Declared("c1", "Standard_D2s_v5", 4, idle=None), made)
    assert after["properties"]["properties"]["scaleSettings"]["nodeIdleTimeBeforeScaleDown"] == "PT83S"


def test_size_and_tier_stay_for_ever() -> None:
    """A step that Azure ML can't make is shown with its reason, and not tried."""
    made = applied(Declared("c1", "Standard_D2s_v5", 2), None)
    (step,) = clusters_file.plan([Declared("c1", "Standard_NC6s_v3", 2, tier="dedicated")], {"c1": made})
    assert step.action == "impossible"
    assert step.why.startswith("size and tier of a cluster can't be changed.")
