"""The commands `wharfinger why`, `history`, `dump`, `queues`, `pools`, `scheduler`, `statistics`, `render` and `validate`.

They ask a running daemon over the debug socket, except `why` and `history` with `--recording`, which read a recording.
:mod:`wharfinger.debug.client.command_output` formats the answers, except those of `pools`. The answer is printed on stdout. A
failure is explained in one line on stderr.
"""

import argparse
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import cast

from wharfinger.debug.addresses import MAX_SETTINGS, MAX_SETTINGS_VERSION, MAX_SHOWN, read_settings_version
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import (
    add_dump_word,
    add_name,
    add_socket,
    print_answer,
    print_failure,
    show,
    terminal_columns,
    with_name,
)
from wharfinger.debug.client.command_output import (
    EXIT_KEPT,
    EXIT_UNKNOWN,
    PROMETHEUS,
    dump_text,
    format_explanation,
    format_history,
    history_text,
    queues_text,
    render_text,
    scheduler_text,
    statistics_text,
    validate_text,
    why_text,
)
from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.errors import DebugError
from wharfinger.debug.listing.get_command import print_list
from wharfinger.debug.listing.listing import Selection
from wharfinger.debug.listing.pools import pools_list
from wharfinger.debug.printing.output import OUTPUT_FORMATS, OutputFormat
from wharfinger.formats.duration import parse_duration
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object
from wharfinger.formats.option_values import path_option
from wharfinger.formats.terminal_text import printable
from wharfinger.kube.times import format_exact_time, parse_time
from wharfinger.runtime.inspector import HistorySnapshot
from wharfinger.runtime.scheduler_details import ExplanationSnapshot

RecordedWhy = Callable[[Path, str, datetime], ExplanationSnapshot | None]
"""A function that reads a recording, and explains a package's state at a past time. It returns None if the recording does not
show the state at that time.

The composition root passes the function, because ``wharfinger.debug`` may not import :mod:`wharfinger.runtime.recording`.
"""
RecordedHistory = Callable[[Path, str], HistorySnapshot | None]
"""A function that reads the history of a package from a recording. It returns None if the recording has no event of the
package.
"""


class RecordingAnswerError(DebugError):
    """A recording cannot be read, or does not contain what was asked for."""


class SettingsFileError(DebugError):
    """A settings file cannot be read, or does not contain settings."""


def add_why(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger why NAME`."""
    parser.description = (
        "Ask a running daemon to explain the state of a package, or of a WorkerClaim (claim/NAMESPACE/NAME). One line is "
        "printed for each cause, from the state of the package to the root cause, and one line with the remedy. Exit code "
        f"0: the package is ready and nothing blocks it; {EXIT_KEPT}: something blocks it, or the installed version is "
        "ready but something blocks the next operation on the package; 1: no daemon answers, or there is no such package."
    )
    add_name(parser, required=True)
    parser.add_argument(
        "--at",
        type=_moment,
        default=None,
        metavar="TIME",
        help="explain the state at a past time, from the events that the daemon has kept; TIME is a time like "
        "2026-11-21T04:03:00Z, a time of day in UTC like 04:03:00, or an age like 10m",
    )
    _add_recording(
        parser,
        "with --at: read the events from this recording, a file or folder that `run --flight-recorder` "
        "wrote; no daemon is needed",
    )
    _add_text_output(parser)
    add_socket(parser)
    parser.set_defaults(handler=_why)


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger history NAME`."""
    parser.description = (
        "Print the decisions that a running daemon has made about a package. Each decision is shown with the part of the "
        "daemon that made it, its cause, and the state of the package before and after it. The daemon also keeps the "
        "decisions about a removed package for some time. Exit code 0: printed; 1: no daemon answers, or nothing is known "
        "about the package."
    )
    add_name(parser, required=True)
    parser.add_argument(
        "--all",
        action="store_true",
        dest="everything",
        help="also print the events that only carry out a decision, such as the queuing of a task or the end of a step of an "
        "operation",
    )
    _add_recording(
        parser,
        "read the decisions from this recording, a file or folder that `run --flight-recorder` wrote; no "
        "daemon is needed",
    )
    parser.add_argument(
        "-o", "--output", choices=("table", *OUTPUT_FORMATS), default="table", help="table (default), json or yaml"
    )
    add_socket(parser)
    parser.set_defaults(handler=_history)


def add_dump(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger dump [NAME]`."""
    add_name(parser)
    _add_document_output(parser)
    add_socket(parser)
    parser.set_defaults(handler=_dump)


def add_queues(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger queues dump [NAME]`."""
    add_dump_word(parser, "dump (may be left out): print the tasks of each queue, the next task first")
    add_name(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", *OUTPUT_FORMATS),
        default="yaml",
        help="yaml (default); json; table: a line for each task, with its lane, the number of its attempt, the time of its "
        "next retry, and what it waits for",
    )
    add_socket(parser)
    parser.set_defaults(handler=with_name(_queues))


def add_pools(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger pools dump [NAME]`."""
    add_dump_word(
        parser,
        "dump (may be left out): print the pools of idle processes for hooks, the hooks that keep running, and the "
        "WorkerPools, with the numbers of claims and the memory of processes",
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="one pool: the path of the interpreter whose idle processes the pool contains, the name of a hook that keeps "
        "running, or NAMESPACE/NAME of a WorkerPool (default: all pools)",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "name", *OUTPUT_FORMATS),
        default="yaml",
        help="yaml (default); json; table: a line for each pool; name: only names",
    )
    add_socket(parser)
    parser.set_defaults(handler=with_name(_pools))


def add_scheduler(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger scheduler dump [NAME]`."""
    add_dump_word(
        parser, "dump (may be left out): print every package, with the decision about it, and with what it waits for"
    )
    add_name(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", *OUTPUT_FORMATS),
        default="yaml",
        help="yaml (default); json; table: a line for each package, with its order, its state, and what it waits for",
    )
    add_socket(parser)
    parser.set_defaults(handler=with_name(_scheduler))


def add_statistics(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger statistics`."""
    parser.description = (
        "Print the counters of a running daemon: its tasks by state; the slots for downloads, renders, runs of hooks, "
        "loads of packages and API calls, with the number of requests that wait for a slot; the packages for whose custom "
        "resource definitions all other packages wait; the watches and schedules of hooks; the objects of releases; the worker "
        "processes; and the store of "
        "downloaded packages. With -o prometheus, print the metrics of the daemon and those of hooks."
    )
    _add_text_output(parser, PROMETHEUS)
    add_socket(parser)
    parser.set_defaults(handler=_statistics)


def add_render(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger render NAME`."""
    add_name(parser, required=True)
    parser.add_argument(
        "--show-secrets",
        action="store_true",
        help="print secrets, too (default: secrets are masked). Everybody who can open the debug socket (mode 0600: the "
        "daemon's user) can see the secrets anyway; the masks only keep them out of screens and tickets",
    )
    add_socket(parser)
    parser.set_defaults(handler=_render)


def add_validate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger validate NAME --settings FILE`."""
    parser.description = (
        "Ask a running daemon whether a package would accept the settings in a file. Nothing is changed. Exit code 0: "
        f"accepted; 1: not accepted, or no daemon answers; {EXIT_UNKNOWN}: not known, because no version of the package is "
        "loaded or installed yet, or because the daemon cannot check the settings now."
    )
    add_name(parser, required=True)
    parser.add_argument(
        "--settings",
        type=path_option,
        required=True,
        metavar="FILE",
        help="a YAML or JSON file with the settings; - is standard input",
    )
    parser.add_argument(
        "--settings-version",
        type=_settings_version,
        default=0,
        metavar="N",
        help="the version of the package's settings schema for which the settings are written (default: the newest)",
    )
    _add_text_output(parser)
    add_socket(parser)
    parser.set_defaults(handler=_validate)


def _why(args: argparse.Namespace) -> int:
    name, output = cast("str", args.name), cast("str", args.output)
    at, recording = cast("datetime | None", args.at), cast("Path | None", args.recording)
    code = 0
    if recording is not None:
        if at is None:
            return print_failure(DebugError("--recording explains the state at a past time; add --at TIME"))
        recorded = cast("RecordedWhy", args.recorded_why)
        try:
            found = recorded(recording, name, at)
            if found is None:
                raise RecordingAnswerError(
                    f"{recording}: no event of {name!r} is recorded before {format_exact_time(at)}"
                )
        except DebugError as error:
            return print_failure(error)
        answer, code = format_explanation(found, output, at)
        show(answer)
        return code

    async def text(client: DebugClient) -> str:
        nonlocal code
        answer, code = await why_text(client, name, output, datetime.now(UTC), at)
        return answer

    return print_answer(args, text) or code


def _history(args: argparse.Namespace) -> int:
    name, output, columns = cast("str", args.name), cast("str", args.output), terminal_columns()
    everything, recording = cast("bool", args.everything), cast("Path | None", args.recording)
    if recording is not None:
        recorded = cast("RecordedHistory", args.recorded_history)
        try:
            found = recorded(recording, name)
            if found is None:
                raise RecordingAnswerError(f"{recording}: no event of {name!r} is recorded")
        except DebugError as error:
            return print_failure(error)
        show(format_history(found, output, columns, everything=everything))
        return 0
    return print_answer(args, lambda client: history_text(client, name, output, columns, everything=everything))


def _dump(args: argparse.Namespace) -> int:
    return print_answer(args, lambda client: dump_text(client, _name(args), _document(args)))


def _queues(args: argparse.Namespace) -> int:
    columns, output = terminal_columns(), cast("str", args.output)
    return print_answer(args, lambda client: queues_text(client, _name(args), output, columns), when_empty="no tasks")


def _pools(args: argparse.Namespace) -> int:
    return print_list(args, pools_list(), Selection(_name(args)))


def _scheduler(args: argparse.Namespace) -> int:
    columns, output = terminal_columns(), cast("str", args.output)
    return print_answer(
        args,
        lambda client: scheduler_text(client, _name(args), output, columns),
        when_empty="no packages in the scheduler",
    )


def _statistics(args: argparse.Namespace) -> int:
    async def text(client: DebugClient) -> str:
        answer = await statistics_text(client, cast("str", args.output))
        # Only a terminal must be protected from control characters of hooks; programs get the text unchanged.
        return printable(answer, allow="\n") if sys.stdout.isatty() else answer

    return print_answer(
        args,
        text,
        when_empty="nothing to count yet: the daemon is starting",
    )


def _render(args: argparse.Namespace) -> int:
    name, show_secrets = cast("str", args.name), cast("bool", args.show_secrets)
    build = f"`wharfinger build {shlex.quote(name)}` renders it without a cluster" if _is_path(name) else ""
    if build and "/" in name:
        return print_failure(
            DebugError(f"expected the name of a package of a running daemon, found a path: {name}; {build}")
        )

    async def text(client: DebugClient) -> str:
        try:
            manifest = await render_text(client, name, show_secrets=show_secrets)
        except NoSuchPackageError as error:
            raise NoSuchPackageError(f"{error}; if you mean the path {name}, {build}" if build else error) from error
        # Only a terminal must be protected from control characters in manifests; programs get them unchanged.
        return printable(manifest, allow="\n\t") if sys.stdout.isatty() else manifest

    return print_answer(args, text, when_empty="no manifests")


def _is_path(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # such as a name that is too long
        return False


def _validate(args: argparse.Namespace) -> int:
    name, version, output = cast("str", args.name), cast("int", args.settings_version), cast("str", args.output)
    code = 0

    async def text(client: DebugClient) -> str:
        nonlocal code
        settings = read_settings_file(cast("Path", args.settings))
        answer, code = await validate_text(client, name, settings, version, output)
        return answer

    return print_answer(args, text) or code


def read_settings_file(path: Path) -> JsonObject:
    """Read the settings in a file; `-` is standard input. An empty file means no settings. Raises SettingsFileError."""
    from wharfinger.formats.yaml.reader import read_yaml  # noqa: PLC0415 - only this command reads YAML

    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_SETTINGS + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_SETTINGS + 1)
        if len(data) > MAX_SETTINGS:
            raise SettingsFileError(f"{path}: more than {MAX_SETTINGS} bytes")
        found = read_yaml(data, what=str(path))
        return {} if found is None else as_object(found, str(path))
    except OSError as error:
        raise SettingsFileError(f"{path}: cannot be read: {error.strerror}") from error
    except FormatError as error:
        raise SettingsFileError(str(error)) from error


def _add_document_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=OUTPUT_FORMATS, default="yaml", help="yaml (default) or json")


def _add_text_output(parser: argparse.ArgumentParser, *more: str) -> None:
    known = ("text", *OUTPUT_FORMATS, *more)
    listed = f"text (default), {', '.join(known[1:-1])} or {known[-1]}"
    parser.add_argument("-o", "--output", choices=known, default="text", help=listed)


def _add_recording(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--recording", type=path_option, default=None, metavar="FILE|DIR", help=what)


def _moment(text: str) -> datetime:
    """Parse the value of ``--at``. Raises ArgumentTypeError."""
    found = moment_in(text, datetime.now(UTC))
    if found is None:
        raise argparse.ArgumentTypeError(
            f"expected a time like 2026-11-21T04:03:00Z, 04:03:00 or 10m, found {text[:MAX_SHOWN]!r}"
        )
    return found


def moment_in(text: str, now: datetime) -> datetime | None:
    """Return the time that a text names; None if it names no time.

    The text is a time with its zone, an age, or a time of day. A time of day is in UTC unless it has an offset, and means its
    most recent occurrence.
    """
    if (moment := parse_time(text)) is not None:
        return moment
    try:
        clock = time.fromisoformat(text)
        zone = clock.tzinfo or UTC
        of_day = datetime.combine(now.astimezone(zone).date(), clock, zone).astimezone(UTC)
    except ValueError:
        pass
    else:
        return of_day if of_day <= now else of_day - timedelta(days=1)
    try:
        return now - parse_duration(text)
    except FormatError:
        return None


def _settings_version(text: str) -> int:
    """Parse the value of ``--settings-version``. Raises ArgumentTypeError."""
    version = read_settings_version(text)
    if version is None:
        raise argparse.ArgumentTypeError(f"expected a number up to {MAX_SETTINGS_VERSION}, found {text[:MAX_SHOWN]!r}")
    return version


def _name(args: argparse.Namespace) -> str | None:
    return cast("str | None", args.name)


def _document(args: argparse.Namespace) -> OutputFormat:
    return cast("OutputFormat", args.output)
