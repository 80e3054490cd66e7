"""The command `wharfinger wait`: wait until a package is ready, is gone, or has a condition."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Final, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import add_name, add_socket, ask, print_failure, show
from wharfinger.debug.client.name_completion import complete_by
from wharfinger.debug.client.polling import GIVE_UP_S, Pacer
from wharfinger.debug.client.unknown_names import no_such_package, why_incomplete
from wharfinger.debug.errors import DebugError, NoDaemonError
from wharfinger.debug.fields import duration
from wharfinger.debug.package.wait_goal import (
    DELETED,
    READY,
    Deleted,
    Goal,
    Ready,
    is_reached,
    progress_text,
    read_goal,
    unknown_condition,
)
from wharfinger.formats.option_values import time_option
from wharfinger.formats.terminal_line import TerminalLine
from wharfinger.formats.terminal_text import printable
from wharfinger.runtime.inspector import PackageSnapshot

EXIT_LATE: Final = 3
APPEAR_S: Final = 10.0
"""The time in seconds for which the command waits until the daemon has seen a resource that was just created."""
_TIMEOUT_S: Final = 300.0


class UnknownConditionError(DebugError):
    """The goal names a condition that a package never has."""


class LateError(DebugError):
    """The goal was not reached in time."""


def add_wait(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger wait NAME`."""
    parser.description = (
        "Wait until a package of a running daemon is ready, is gone, or has a condition. On a terminal, a line shows the "
        f"progress. If the daemon does not know the name, the command reports an error only after {APPEAR_S:.0f} s, because "
        f"the resource may have been created just now. If the daemon has answered, but then stops answering, the command "
        f"waits up to {GIVE_UP_S:.0f} s for a restart of the daemon. Exit code 0: the goal is reached; {EXIT_LATE}: the goal is "
        "not reached within --timeout; 1: no daemon answers, or there is no such package or no such condition; 2: wrong usage."
    )
    add_name(parser, required=True)
    goal = parser.add_argument(
        "--for",
        dest="goal",
        type=_goal,
        default=Ready(),
        metavar="GOAL",
        help="the goal: ready (default), deleted, or condition=TYPE[=True|False|Unknown], such as condition=Loaded",
    )
    complete_by(goal, _complete_goal)
    parser.add_argument(
        "--timeout",
        type=time_option,
        default=_TIMEOUT_S,
        metavar="TIME",
        help="longest time to wait, such as 90s or 1h30m (default: 5m); 0s: check once",
    )
    add_socket(parser)
    parser.set_defaults(handler=_wait)


def _goal(text: str) -> Goal:
    """Parse the value of ``--for``. Raises ArgumentTypeError."""
    try:
        return read_goal(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _complete_goal(prefix: str, parsed_args: argparse.Namespace, **_others: object) -> list[str]:  # noqa: ARG001
    return [each for each in (READY, DELETED, "condition=") if each.startswith(prefix)]


def _wait(args: argparse.Namespace) -> int:
    return wait(args, Pacer(), time.monotonic)


def wait(args: argparse.Namespace, pacer: Pacer, clock: Callable[[], float]) -> int:
    """Wait until the package reaches the goal in ``args``, at most for the time limit there. Return the exit code. ``clock``
    returns seconds.
    """
    name, goal, limit_s = cast("str", args.name), cast("Goal", args.goal), cast("float", args.timeout)
    line, begun_s = TerminalLine(sys.stderr), clock()
    try:
        answered_s: float | None = None
        while True:
            pacer.asked()
            try:
                package, incomplete = ask(args, lambda client: _package(client, name))
            except NoDaemonError:
                spent_s = clock() - begun_s
                if answered_s is None or spent_s >= limit_s or spent_s - answered_s >= GIVE_UP_S:
                    raise
                line.show(f"{name}: the daemon does not answer ({duration(spent_s)})")
                pacer.next(limit_s - spent_s)
                continue
            answered_s = spent_s = clock() - begun_s
            if not incomplete and is_reached(goal, package):
                line.clear()
                show(f"{printable(name)}: {goal}\n")
                return 0
            if package is not None and (problem := unknown_condition(goal, package)):
                raise UnknownConditionError(f"{name}: {problem}")
            if (
                package is None
                and not incomplete
                and not isinstance(goal, Deleted)
                and spent_s >= min(APPEAR_S, limit_s)
            ):
                raise ask(args, lambda client: no_such_package(client, name))
            if spent_s >= limit_s:
                raise _late(name, goal, package, limit_s)
            line.show(f"{name}: {incomplete or progress_text(package)} ({duration(spent_s)})")
            pacer.next(limit_s - spent_s)
    except DebugError as error:
        line.clear()
        print_failure(error)
        return EXIT_LATE if isinstance(error, LateError) else 1
    except KeyboardInterrupt:
        line.clear()
        raise


async def _package(client: DebugClient, name: str) -> tuple[PackageSnapshot | None, str]:
    """Return a package, and "". If the daemon does not know the package, return None, and the reason why the daemon may not know
    it yet, such as a recent start. The reason is "" if the daemon knows all packages.
    """
    package = await client.package(name)
    return package, await why_incomplete(client) if package is None else ""


def _late(name: str, goal: Goal, package: PackageSnapshot | None, limit_s: float) -> LateError:
    now = progress_text(package)
    return LateError(
        f"{name}: the goal '{goal}' was not reached in {duration(limit_s)} ({now}); `wharfinger why {name}` shows the cause"
    )
