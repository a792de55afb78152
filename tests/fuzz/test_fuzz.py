"""Any bytes give a value or a named error, and the resulting record can be read again."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
RUNS = 1000  # runs per target, in a process that instruments the code

WORDS = """
command compute resources instance_count limits timeout outputs inputs path type tags distribution job trainer template
data nodes min max parameters specversion eventType Microsoft.Storage.BlobCreated subject data api PutBlob
containers/drops/blobs/mnist/a time eventTime run hour route name token kind files size claims typ val auth_typ aad
"""
words = st.sampled_from(WORDS.split())  # fmt: skip
scalars = st.one_of(
    words, st.text(max_size=20), st.integers(), st.floats(), st.booleans(), st.none(), st.just("azureml:c")
)
plain = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=8), inner, max_size=5)
)
job_keys = st.sampled_from(
    ["command", "compute", "resources", "limits", "outputs", "inputs", "tags", "distribution", "code", "environment"]
)


def written(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


inputs = st.one_of(
    st.binary(max_size=300),
    plain.map(written),
    st.dictionaries(job_keys, plain, max_size=5).map(written),
    st.dictionaries(job_keys, plain, max_size=5).map(lambda job: written({"job": job})),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_any_bytes_get_an_answer(target: Any) -> None:
    """The inputs are random bytes, JSON and texts made of the words that the readers know."""

    @settings(max_examples=100, suppress_health_check=list(HealthCheck))
    @given(inputs)
    def check(data: bytes) -> None:
        target(data)

    check()


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris has no wheel here")
def test_guided_by_coverage(tmp_path: Path) -> None:
    """The inputs are bytes that an instrumented run finds worth following, from a seed that the target can read."""
    for target in TARGETS:
        (tmp_path / target).mkdir()
        for number, seed in enumerate(SEEDS.get(target, [b"{}"])):
            (tmp_path / target / str(number)).write_bytes(seed)
    options = [f"-runs={RUNS}", "-max_total_time=20", "-seed=1", f"-artifact_prefix={tmp_path}/", "-max_len=400"]
    argv = [sys.executable, "-m", "tests.fuzz.guided", ",".join(TARGETS), str(tmp_path), *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=250, env=env)
    assert done.returncode == 0, done.stderr[-3000:]


EVENT = (
    b'{"eventType":"Microsoft.Storage.BlobCreated","subject":"/blobServices/default/containers/drops/blobs/mnist/a/1"'
)
SEEDS = {
    "job_file": [b"inputs: {epochs: 2}\nlimits: {timeout: 60}\n", b"resources:\n  instance_count: 2\n"],
    "body": [b'{"template":"mnist","data":"drops/mnist/a","nodes":{"min":1,"max":2}}', b'{"job":{"command":"x"}}'],
    "principal": [b'{"auth_typ":"aad","claims":[{"typ":"roles","val":"trainyard.reader"}]}'],
    "event": [EVENT + b',"eventTime":"2026-01-01T00:00:00Z","data":{"api":"PutBlob"}}'],
    "message": [
        b'{"run":"mnist-0"}',
        b'{"hour":"20260101T00"}',
        b'{"route":"mnist","name":"a","token":"t"}',
    ],
    "metrics": [b'{"step":1,"loss":0.5}\n{"step":2,"loss":0.25}\n'],
    "manifest": [b'{"files":[{"name":"a","size":1,"md5":"","etag":""}],"outputs":[]}'],
    "row": [b'[["received","2026-01-01T00:00:00Z","why"]]', b"2026-01-01T00:00:00+00:00"],
}
