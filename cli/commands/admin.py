"""admin replay."""

from __future__ import annotations

from .. import replay as replaying
from ..session import Session, command_of
from . import options


@command_of("admin")
def replay(
    session: Session,
    queue: options.Queue = "",
    account_url: options.AdminAccountUrl = "",
    dry_run: options.Count = False,
) -> None:
    """Give back to the queues what was set aside: poison messages and dead letters.

    Mend the cause first, as `status` and the app's log show it: a message that fails again is set aside again. A
    dead letter that belongs to no queue stays where it is, and is named.

    Example: trainyard admin replay --queue drop-events
    """
    with replaying.opened(session.profile, account_url) as account:
        done = replaying.replay(account, queue, dry_run)
    verb = "would go back" if dry_run else "went back"
    lines = [
        f"{name}: {moved.poison:,} poison messages and {moved.dead_letters:,} dead letters {verb}"
        for name, moved in done.queues.items()
        if moved.poison or moved.dead_letters
    ]
    session.tell(done.told(), "\n".join(lines) or "Nothing was set aside.")
    for name in done.unreadable:
        session.remark(f"Left: {replaying.DEAD_LETTERS}/{name} belongs to none of these queues.", "yellow")
