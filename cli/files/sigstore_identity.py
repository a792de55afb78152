"""A folder's signature by the identity of a person or a workflow, which Sigstore certifies.

OpenSSF's package model-signing checks the signature. The roots of trust come from the internet, or from a file (a
client trust configuration).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import CliError, NotFound, extra

SUFFIX = ".sigstore"  # beside the folder, because inside it would be an unsigned file


@dataclass(frozen=True)
class Identity:
    """The required signer: the name in the certificate, and the issuer that vouched for the name."""

    name: str
    issuer: str


def place(folder: Path) -> Path:
    """Return the path of this folder's signature: FOLDER.sigstore."""
    return folder.with_name(f"{folder.name}{SUFFIX}")


def why_not(folder: Path, identity: Identity, roots: Path | None = None) -> str:
    """Return the reason why this identity did not sign the folder's present content, or '' if it did. Raises
    CliError if the check can't be made."""
    signature = place(folder)
    if not signature.is_file():
        raise NotFound(
            f"There is no {signature}; `model_signing sign sigstore {folder} --signature {signature}` makes it."
        )
    try:
        from model_signing import verifying
        from sigstore.errors import Error
    except ImportError as exc:
        raise CliError(f"--identity needs the package model-signing: {extra('identity')}.") from exc
    try:
        check = verifying.Config().use_sigstore_verifier(  # type: ignore[no-untyped-call]  # it has no types
            identity=identity.name, oidc_issuer=identity.issuer, trust_config=roots
        )
    except (Error, OSError, ValueError) as exc:
        raise CliError(
            f"Sigstore's roots of trust can't be read: {exc}. They need the internet, or --roots with a file.",
            "unreachable",
        ) from exc
    try:
        check.verify(folder, signature)
    except (Error, ValueError, TypeError, KeyError) as exc:
        return f"{identity.name} did not sign this model: {str(exc).partition(chr(10))[0]}"
    return ""
