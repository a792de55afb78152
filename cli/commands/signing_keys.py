"""The command keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from .. import show
from ..results import TrustedKey, prints
from ..session import Session, command, user_path
from ..setup import signing_keys as stored

Digest = Annotated[
    str, Option("--trust", metavar="SHA256", help="Trust this key of the deployment from now on, on this computer.")
]
Forget = Annotated[str, Option("--forget", metavar="SHA256", help="Stop trusting this key on this computer.")]
Withdraw = Annotated[
    str,
    Option("--withdraw", metavar="SHA256", help="Withdraw this key for everybody: no signature of it counts any more."),
]
Save = Annotated[
    Path | None,
    Option("--save", metavar="FILE", help="Write the trusted public keys (PEM), such as for an auditor."),
]
Why = Annotated[str, Option("--why", metavar="TEXT", help="The reason for withdrawing the key.")]


@command
@prints(list[TrustedKey], "POST model-keys/{sha256}/withdraw")
def keys(
    session: Session,
    trust: Digest = "",
    forget: Forget = "",
    withdraw: Withdraw = "",
    why: Why = "",
    save: Save = None,
) -> None:
    """List the keys that sign models of this deployment, and whether this computer trusts them.

    When this computer first needs a key, it trusts all keys that the deployment has at that time. Before you trust a
    later key, compare its SHA-256 with one that you got in another way, for example from the administrator by phone.

    Example: trainyard keys

    Example: trainyard keys --save keys.pem

    Example: trainyard keys --trust 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    """
    if sum(map(bool, (trust, forget, withdraw))) > 1:
        raise typer.BadParameter("give one of --trust, --forget and --withdraw.")
    if withdraw:
        gone = session.api.post("model-keys", withdraw, "withdraw", body={"why": why})
        session.print_result(
            gone, f"Key {gone['sha256'][:16]} is withdrawn. `models NAME/N --sign-again` signs a version anew."
        )
        return
    if trust:
        stored.trust(session, trust)
    if forget:
        stored.forget(session, forget)
    known = stored.trusted(session)
    if save:
        stored.write(user_path(save), known.values())
        session.remark(
            f"{save} has the {len(known)} trusted key(s): `verify MODEL/N FOLDER --key {save}` needs no API."
        )
    rows: list[TrustedKey] = [
        {
            "sha256": sha256,
            "since": str(key["since"] or ""),
            "until": str(key["until"] or ""),
            "withdrawn_at": str(key["withdrawn_at"] or ""),
            "why": str(key["why"]),
            "trusted": sha256 in known,
        }
        for sha256, key in stored.served(session.api).items()
    ]
    session.print_result(rows, show.models.keys([dict(row) for row in rows]))
