"""Say of a fetched model what it was made from, by whom, with what, and how good it is.

    python examples/audit_model.py FOLDER KEY.pem

FOLDER is what `trainyard fetch churn@production --to FOLDER` wrote, KEY.pem what `trainyard keys --save KEY.pem` wrote.
The script needs Python, the package cryptography, and nothing of Trainyard: no account, no network, no other file. It
exits with 1 if the folder is not what the key signed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

NOT_KNOWN = "not known"
NONE = "none"
MOST_SHOWN = 20  # files and packages of one kind


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print(__doc__)
        return 2
    folder, key = Path(argv[0]), Path(argv[1]).read_bytes()
    if problems := check(folder, key):
        print("\n".join(problems))
        return 1
    predicate = provenance(folder)
    for title, answers in (
        ("From what", from_what(predicate)),
        ("By whom", by_whom(predicate)),
        ("With what", with_what(predicate)),
        ("How good", how_good(predicate)),
    ):
        print(f"\n{title}")
        for name, answer in answers.items():
            print(f"  {name:22} {shown(answer)}")
    print("\nNot known, says the proof")
    print("\n".join(f"  {sentence}" for sentence in predicate["trainyard_not_known"]) or "  nothing")
    return 0


# --- is it what the key signed? ---------------------------------------------------------------------------------------


def check(folder: Path, key: bytes) -> list[str]:
    """Return what is wrong: another signer, or files that differ, are missing or were added. [] if all is as signed."""
    envelope = json.loads((folder / "model.sig").read_text("utf-8"))["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"])
    keys = re.findall(rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", key, re.DOTALL)
    if not any(is_signed(payload, envelope, each) for each in keys):
        return ["model.sig: none of the keys signed it"]
    signed = {row["name"]: row["digest"] for row in json.loads(payload)["predicate"]["resources"]}
    paths = (path for path in folder.rglob("*") if path.is_file() and path != folder / "model.sig")
    there = {path.relative_to(folder).as_posix(): sha256(path) for path in paths}
    return [
        f"{name}: {_fault(signed, there, name)}" for name in sorted({*signed, *there}) if _fault(signed, there, name)
    ]


def is_signed(payload: bytes, envelope: Any, pem: bytes) -> bool:
    """Return whether the key signed the payload, as DSSE says: github.com/secure-systems-lab/dsse."""
    key, kind = load_pem_public_key(pem), str(envelope["payloadType"]).encode()
    if not isinstance(key, EllipticCurvePublicKey):
        return False
    try:
        content = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
        key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), content, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _fault(signed: dict[str, str], there: dict[str, str], name: str) -> str:
    if name not in signed:
        return "was added after signing"
    if name not in there:
        return "is missing"
    return "" if signed[name] == there[name] else "differs from what was signed"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provenance(folder: Path) -> Any:
    """Return the predicate of provenance.json, https://slsa.dev/provenance/v1."""
    return json.loads((folder / "provenance.json").read_text("utf-8"))["predicate"]


# --- the four questions: answers by name, NOT_KNOWN where the proof has no such fact ----------------------------------


def from_what(predicate: Any) -> dict[str, Any]:
    """Return data (SHA-256 by file), code (digest by name), commits, and the parent."""
    rows, asked = _dependencies(predicate), predicate["buildDefinition"]["externalParameters"]
    data = {row["name"]: row["digest"].get("sha256", NOT_KNOWN) for row in rows if "etag" in row.get("annotations", {})}
    code = {row["name"]: row["digest"] for row in rows if _is(row, "code") and "digest" in row}
    parents = [row["uri"] for row in rows if row["name"] in ("parent model", "continued run")]
    continued = bool(asked.get("continues"))
    return {
        "kind of run": asked["kind"],
        "drop": f"{asked['drop']}, generation {asked['generation']}" if asked["drop"] else NONE,
        "data": data or NOT_KNOWN,
        "code": {name: digest["sha256"] for name, digest in code.items() if "sha256" in digest} or NOT_KNOWN,
        "commit": {name: digest["gitCommit"] for name, digest in code.items() if "gitCommit" in digest} or NOT_KNOWN,
        "parents": parents or NONE,
        "parents' checkpoints": NOT_KNOWN if continued else NONE,
        "as it was recorded": predicate["trainyard_run"]["trainedOn"]["verdict"] or NOT_KNOWN,
    }


def by_whom(predicate: Any) -> dict[str, Any]:
    """Return who asked for the run and who promoted it. A name that nobody signed in with is a claim, so not known."""
    run, model, stated = (predicate[f"trainyard_{part}"] for part in ("run", "model", "stated"))
    return {
        "asked for by": run["owner"] if run["ownerIsVerified"] else NOT_KNOWN,
        "promoted by": _promoter(model),
        "promoted at": model["promotedAt"],
        "why": model["why"] or NONE,
        "supplier": stated.get("supplier", NOT_KNOWN),
        "author": stated.get("author", NOT_KNOWN),
        "workspace": predicate["runDetails"]["builder"]["id"],
    }


def with_what(predicate: Any) -> dict[str, Any]:
    """Return command, parameters, nodes, environment, packages and processor, and the time of the training."""
    asked, run = predicate["buildDefinition"]["externalParameters"], predicate["trainyard_run"]
    rows, times = _dependencies(predicate), predicate["runDetails"]["metadata"]
    steps = asked.get("steps", {})
    packages = [row["uri"] for row in rows if row.get("uri", "").startswith("pkg:pypi/")]
    node = predicate["buildDefinition"]["internalParameters"]["node"]
    return {
        "run": run["name"],
        "command": {name: step["command"] for name, step in steps.items()} or asked["command"],
        "parameters": {name: step["parameters"] for name, step in steps.items()} or asked["parameters"] or NONE,
        "nodes": f"{_nodes(asked, run)} of {asked['cluster']}",
        "trial": asked.get("trial", run.get("trial", {}).get("sweep", NONE)),
        "members": [member["job"] for member in run.get("elastic", {}).get("members", [])] or NONE,
        "environment": {row["name"]: row["uri"] for row in rows if _is(row, "environment")},
        "packages": dict(sorted(_package(uri) for uri in packages)) or NOT_KNOWN,
        "processor": node.get("processor", NOT_KNOWN),
        "python": node.get("python", NOT_KNOWN),
        "from, to": f"{times['startedOn']}, {times['finishedOn']}",
    }


def how_good(predicate: Any) -> dict[str, Any]:
    """Return the metrics of the saved weights, whose word each is, and what people stated about use and limits."""
    run, stated = predicate["trainyard_run"], predicate["trainyard_stated"]
    metrics = {name: metric["value"] for name, metric in run["metrics"].items()}
    said = {name: metric["saidBy"] for name, metric in run["metrics"].items()}
    return {
        "metrics": metrics or NOT_KNOWN,
        "said by": said or NOT_KNOWN,
        "saved at step": NOT_KNOWN if run["savedAtStep"] is None else run["savedAtStep"],
        **{name: stated.get(name, NOT_KNOWN) for name in ("intended_use", "limits", "licence", "data_licence")},
    }


def _promoter(model: Any) -> str:
    if model.get("promotedByRule"):
        return "the rule of the route"
    return str(model["promotedBy"]) if model["promoterIsVerified"] else NOT_KNOWN


def _dependencies(predicate: Any) -> list[Any]:
    rows: list[Any] = predicate["buildDefinition"]["resolvedDependencies"]
    return rows


def _is(row: Any, kind: str) -> bool:
    return bool(row["name"] == kind or row["name"].startswith(f"{kind} of step "))


def _nodes(asked: Any, run: Any) -> str:
    fewest = run.get("elastic", {}).get("min_nodes", asked["nodes"])
    return str(asked["nodes"]) if fewest == asked["nodes"] else f"{fewest} to {asked['nodes']}"


def _package(uri: str) -> tuple[str, str]:
    name, _, version = uri.removeprefix("pkg:pypi/").partition("@")
    return name, version


# --- for people -------------------------------------------------------------------------------------------------------


def shown(answer: Any) -> str:
    """Return an answer as text; of long ones the beginning."""
    if not isinstance(answer, dict | list):
        return str(answer)
    lines = list(_lines(answer))
    more = [f"and {len(lines) - MOST_SHOWN} more"] if len(lines) > MOST_SHOWN else []
    return f"\n{'':25}".join([*lines[:MOST_SHOWN], *more])


def _lines(answer: dict[str, Any] | list[Any]) -> Iterator[str]:
    for each in answer:
        yield f"{each}: {answer[each]}" if isinstance(answer, dict) else str(each)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
