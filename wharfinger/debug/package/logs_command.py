"""The command `wharfinger logs`: the daemon's log lines about one package, and the output of its hooks."""

import argparse
from typing import Final, cast

from wharfinger.debug.client.command_client import add_name, add_socket, ask, print_failure, show, write_note
from wharfinger.debug.client.polling import Pacer
from wharfinger.debug.client.unknown_names import no_such_package
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.errors import DebugError
from wharfinger.debug.printing.log_line import log_line_text
from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.formats.terminal_text import json_printable, printable
from wharfinger.runtime.package_details import LogLineSnapshot, LogSnapshot

_MOST_TAIL: Final = 1_000_000


def add_logs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger logs NAME`."""
    parser.description = (
        "Print the log lines of a running daemon about one package, and the output of the package's hooks. The daemon "
        "keeps the last lines of each package in memory, with secrets masked, even after the package was removed. For the "
        "whole log of the daemon, use journalctl or kubectl logs. Exit code 0: printed; 1: no daemon answers, or the "
        "daemon does not know the package."
    )
    add_name(parser, required=True)
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="after the kept lines, print new lines until Ctrl-C; the command asks the daemon about once a second",
    )
    parser.add_argument(
        "--tail",
        type=_count,
        default=_MOST_TAIL,
        metavar="N",
        help="only the last N of the lines that the daemon keeps (default: all)",
    )
    parser.add_argument("--hook", default="", metavar="HOOK", help="only the output of this hook, such as hooks/a.sh")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="text (default), or json: one object on each line",
    )
    add_socket(parser)
    parser.set_defaults(handler=_logs)


def _count(text: str) -> int:
    """Parse the value of ``--tail``. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and int(text[:10]) <= _MOST_TAIL):
        raise argparse.ArgumentTypeError(f"expected a number up to {_MOST_TAIL}, found {text[:100]!r}")
    return int(text)


def _logs(args: argparse.Namespace) -> int:
    return logs(args, Pacer())


def logs(args: argparse.Namespace, pacer: Pacer) -> int:
    """Print the log lines of a package, and with the option to follow also later lines; return the exit code."""
    name = cast("str", args.name)
    try:
        pacer.asked()
        found, last = _ask(args, name, 0), 0
        if not found.lines and not args.follow:
            write_note("no lines are kept")
        if found.lines and not _chosen(args, found):
            write_note(_no_lines_of(args, name))
        _print(args, found, cast("int", args.tail))
        while args.follow:
            last = found.lines[-1].number if found.lines else last
            pacer.next()
            pacer.asked()
            before, found = found, _ask(args, name, last)
            if found.run != before.run:
                write_note("the daemon was started again")
                found, last = _ask(args, name, 0), 0
            _print(args, found, _MOST_TAIL)
    except DebugError as error:
        return print_failure(error)
    return 0


def _ask(args: argparse.Namespace, name: str, after: int) -> LogSnapshot:
    found = ask(args, lambda client: client.logs(name, after))
    if found is None:
        raise ask(args, lambda client: no_such_package(client, name))
    return found


def _chosen(args: argparse.Namespace, log: LogSnapshot) -> list[LogLineSnapshot]:
    hook = cast("str", args.hook)
    return [line for line in log.lines if not hook or line.hook == hook]


def _no_lines_of(args: argparse.Namespace, name: str) -> str:
    """Return the reason why no lines of the hook can be printed: none are kept, or the package has no such hook."""
    hook, package = cast("str", args.hook), ask(args, lambda client: client.package(name))
    hooks = [each.name for each in package.hooks] if package is not None else []
    if hook in hooks or not hooks:
        return f"the daemon has no log lines of the hook {printable(hook)}"
    return f"the package has no hook {printable(hook)!r}; its hooks are {', '.join(map(printable, hooks))}"


def _print(args: argparse.Namespace, log: LogSnapshot, tail: int) -> None:
    if log.dropped:
        write_note(f"{log.dropped} earlier lines are not kept")
    lines = _chosen(args, log)
    text = "".join(_line(line, log.package, args.output) for line in (lines[-tail:] if tail else []))
    if text:
        show(text)


def _line(line: LogLineSnapshot, package: str, output: str) -> str:
    if output == "json":
        document: JsonObject = {"package": package, **record_to_json(line)}
        return f"{json_printable(encode_json(document).decode())}\n"
    return f"{log_line_text(line)}\n"
