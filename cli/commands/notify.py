"""The commands notify add, notify list, notify remove, notify test and notify log."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Argument, Option

from .. import show
from ..api import run_list
from ..results import prints
from ..session import Session, command_of
from ..setup import tab_completion
from . import options

On = Annotated[
    list[str],
    Option(
        "--on",
        metavar="KIND",
        help="completed, failed, canceled, evicted, late, sick, budget, idle, model, schedule or poison. "
        "Repeat it for more.",
    ),
]
NoticeTo = Annotated[
    str,
    Option(
        "--to", metavar="ADDRESS", help="https://... or a mail address; - reads the address from a prompt without echo."
    ),
]
ChannelName = Annotated[
    str,
    Option("--channel", metavar="NAME", help="webhook, slack, teams or mail. Default: derived from the address."),
]
OfRoute = Annotated[
    str, Option("--route", metavar="NAME", help="Only for runs of this route.", autocompletion=tab_completion.routes)
]
SubscriptionName = Annotated[
    str,
    Argument(
        metavar="ID", help="A subscription, as `notify list` shows it.", autocompletion=tab_completion.subscriptions
    ),
]


@command_of("notify")
@prints("POST notices")
def notify_add(
    session: Session,
    on: On,
    to: NoticeTo,
    channel: ChannelName = "",
    route: OfRoute = "",
    experiment: options.OfExperiment = "",
) -> None:
    """Get a notice when runs end, hang or lose nodes, or when budgets, schedules, clusters or messages need attention.

    The address is a secret, like a password: Trainyard stores it and never shows it again.
    Use --to - to type it without echo.

    Example: trainyard notify add --on failed --on budget --to https://hooks.slack.com/services/T0/B0/x
    """
    address = typer.prompt("Address", hide_input=True) if to == "-" else to
    body = {"on": on, "to": address, "channel": channel, "route": route, "experiment": experiment}
    made = session.api.post("notices", body={name: value for name, value in body.items() if value})
    session.print_result(made, made["id"])
    session.remark(f"{', '.join(on)} -> {made['channel']} at {made['to']}", "dim")
    if made["secret"]:
        session.remark(f"Trainyard signs each delivery with this secret, which is shown only once: {made['secret']}")
    session.remark(f"Try it: {session.program} notify test {made['id']}", "dim")


@command_of("notify")
@prints("GET notices")
def notify_list(session: Session, mine: options.Mine = False) -> None:
    """List the subscriptions: the events, and who gets them where.

    Example: trainyard notify list --mine
    """
    subscriptions: Any = session.api.get("notices")
    subscriptions = run_list.own_rows(session.api, subscriptions) if mine else subscriptions
    session.print_result(subscriptions, show.notices.subscriptions(subscriptions))


@command_of("notify")
@prints("DELETE notices/{subscription}")
def notify_remove(session: Session, subscription: SubscriptionName) -> None:
    """Remove a subscription.

    Example: trainyard notify remove n-0123456789abcdef
    """
    answer = session.api.delete("notices", subscription)
    session.print_result(answer, f"{subscription} is gone.")


@command_of("notify")
@prints("POST notices/{subscription}/test")
def notify_test(session: Session, subscription: SubscriptionName) -> None:
    """Send a test to a subscription.

    Example: trainyard notify test n-0123456789abcdef
    """
    answer = session.api.post("notices", subscription, "test")
    session.print_result(
        answer, f"{answer['event']} was sent to the queue; `notify log {subscription}` shows whether it was delivered."
    )


@command_of("notify")
@prints("GET notices/{subscription}/deliveries")
def notify_log(session: Session, subscription: SubscriptionName) -> None:
    """Show the results of the newest notices of a subscription.

    Example: trainyard notify log n-0123456789abcdef
    """
    deliveries: list[dict[str, Any]] = session.api.get("notices", subscription, "deliveries")
    session.print_result(deliveries, show.notices.deliveries(deliveries))
