"""The commands that print one document about a package, or about the daemon: `values`, `snapshots` and `tasks`."""

import argparse
from collections.abc import Sequence
from typing import Final, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import add_name, add_socket, print_answer
from wharfinger.debug.client.name_completion import complete_by
from wharfinger.debug.client.unknown_names import no_such_package, one_package
from wharfinger.debug.encoding.details import snapshots_to_json, tasks_to_json
from wharfinger.debug.listing.get_command import complete_output, output_format
from wharfinger.debug.listing.listing import JSON_PATH, document_text
from wharfinger.debug.printing.output import OUTPUT_FORMATS
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.terminal_text import printable
from wharfinger.runtime.package_details import DaemonTaskSnapshot

_NO_ANSWER: Final = "1: no daemon answers, or there is no such package"


def add_values(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger values NAME`."""
    parser.description = (
        "Print the current values of a package of a running daemon: the defaults, overridden by the settings, and then by "
        f"the patches of the package's hooks. Secrets are masked. Exit code 0: printed; {_NO_ANSWER}."
    )
    add_name(parser, required=True)
    parser.add_argument(
        "--settings",
        action="store_true",
        help="print only the settings: spec.settings of the package's resource, merged with the sources that "
        "spec.settingsFrom names",
    )
    _add_output(parser)
    add_socket(parser)
    parser.set_defaults(handler=_values)


def add_snapshots(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger snapshots NAME`."""
    parser.description = (
        "Print the snapshots that the hooks of a package would get now. For each hook and each binding, the snapshot "
        "contains the objects that the binding selects or, if the binding has a filter, the results of the filter. Secrets "
        "are masked, and so are results of filters over Secrets. A hook without kubernetes bindings has no snapshots. Exit "
        f"code 0: printed; {_NO_ANSWER}."
    )
    add_name(parser, required=True)
    parser.add_argument(
        "--hook", default="", metavar="HOOK", help="only the snapshots of this hook, such as hooks/a.sh"
    )
    _add_output(parser)
    add_socket(parser)
    parser.set_defaults(handler=_snapshots)


def add_tasks(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger tasks`."""
    parser.description = (
        "Print the running trio tasks of the daemon's process as a tree, each task below the task that started it. Each "
        "line shows the package for which the task works, the reason why the work began, and the function in which the task "
        "waits. Add this output to a report about a daemon that hangs. Exit code 0: printed; 1: no daemon answers."
    )
    parser.add_argument("--package", default="", metavar="NAME", help="only the tasks that work for this package")
    parser.add_argument(
        "-o", "--output", choices=("text", *OUTPUT_FORMATS), default="text", help="text (default), json or yaml"
    )
    add_socket(parser)
    parser.set_defaults(handler=_tasks)


def _add_output(parser: argparse.ArgumentParser) -> None:
    output = parser.add_argument(
        "-o",
        "--output",
        type=_document_format,
        default="yaml",
        metavar="FORMAT",
        help="yaml (default); json; jsonpath=TEMPLATE: the fields that the template selects",
    )
    complete_by(output, complete_output)


def _document_format(text: str) -> str:
    """Parse the value of ``-o``. Raises ArgumentTypeError."""
    if text not in OUTPUT_FORMATS and not text.startswith(JSON_PATH):
        raise argparse.ArgumentTypeError(f"there is no format {text!r}; known are json, yaml and {JSON_PATH}TEMPLATE")
    return output_format(text)


def _values(args: argparse.Namespace) -> int:
    async def text(client: DebugClient) -> str:
        package = await one_package(client, cast("str", args.name))
        return _document(args, package.settings if args.settings else package.values)

    return print_answer(args, text)


def _snapshots(args: argparse.Namespace) -> int:
    name, hook = cast("str", args.name), cast("str", args.hook)

    async def text(client: DebugClient) -> str:
        found = await client.hook_snapshots(name)
        if found is None:
            raise await no_such_package(client, name)
        return _document(args, snapshots_to_json(each for each in found if hook in ("", each.hook)))

    return print_answer(args, text)


def _document(args: argparse.Namespace, document: JsonObject) -> str:
    output = cast("str", args.output)
    text = document_text(document, output)
    return f"{text}\n" if output.startswith(JSON_PATH) and not text.endswith("\n") else text


def _tasks(args: argparse.Namespace) -> int:
    async def text(client: DebugClient) -> str:
        package = cast("str", args.package)
        found = [each for each in await client.tasks() if package in ("", each.package)]
        if args.output != "text":
            return document_text(tasks_to_json(found), cast("str", args.output))
        return "".join(f"{line}\n" for line in task_lines(found))

    return print_answer(args, text, when_empty="no tasks")


def task_lines(tasks: Sequence[DaemonTaskSnapshot]) -> list[str]:
    """Return one line for each task, indented by its depth, safe to print on a terminal."""
    top = min((task.depth for task in tasks), default=0)
    lines = []
    for task in tasks:
        about = f" [{task.package}]" if task.package else ""
        cause = f" ({task.cause})" if task.cause else ""
        place = f" at {task.at}" if task.at else ""
        lines.append(printable(f"{'  ' * (task.depth - top)}{task.name}{about}{cause}{place}"))
    return lines
