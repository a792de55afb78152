"""The external port of elastic runs: the row of the table in which the nodes of a run meet."""

from __future__ import annotations

from typing import Protocol

from shared.kernel.parts import FeatureStore


class Rendezvous(Protocol):
    """The meetings of the nodes of elastic runs. The nodes' own program is in trainers/elastic."""

    def close(self, run: str, why: str) -> None:
        """Close the meeting of this run for this reason: a node that arrives or waits exits at once.

        Does nothing if the meeting is closed. A run whose nodes never met gets a closed meeting. Raises Changed if
        nodes keep writing their meeting, and Unavailable if nothing answers.
        """


RENDEZVOUS: FeatureStore[Rendezvous] = FeatureStore("rendezvous")
