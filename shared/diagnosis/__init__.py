"""Diagnosis: why a training failed, or makes no progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.diagnosis.causes import Diagnosis


def diagnose_log(text: str, exit_code: int | None = None) -> Diagnosis:
    """Return the cause of a training's failure, from its log and its exit code: see shared/diagnosis/judge.py."""
    from shared.diagnosis.judge import diagnose_log as judge  # its patterns are compiled on first use

    return judge(text, exit_code)
