"""The command `wharfinger graph`: the packages of a running daemon, their states and dependencies, as a list or a picture."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from wharfinger.debug.client.command_client import (
    add_name,
    add_socket,
    ask,
    is_unicode,
    print_failure,
    show,
    terminal_columns,
    write_note,
)
from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.errors import DebugError
from wharfinger.debug.graph.dot import graph_to_dot
from wharfinger.debug.graph.json import graph_to_json
from wharfinger.debug.graph.mermaid import MAX_CHARACTERS, MAX_EDGES, graph_to_mermaid, is_too_much
from wharfinger.debug.graph.model import Graph, make_graph, surroundings_of
from wharfinger.debug.graph.svg import graph_to_svg
from wharfinger.debug.graph.text import ASCII, UNICODE, Branches, graph_to_text
from wharfinger.debug.printing.output import render_json
from wharfinger.formats.option_values import path_option
from wharfinger.runtime.inspector import Inspector

_OUTPUTS: Final = ("text", "dot", "mermaid", "svg", "json")


class OutputFileError(DebugError):
    """A file cannot be written."""


def add_graph(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger graph [NAME]`."""
    parser.description = (
        "Draw the packages of a running daemon, with their states and relations. A package can require another package, "
        "require one package of a group, and exclude packages. It can restrict the version of another package without "
        "requiring that package. It can also subscribe to another package, and is then run again whenever that package is run "
        "again. With NAME: draw only this package, and the packages that are related to it, directly or through other "
        "packages. Exit code 0: drawn, even if there are no packages; 1: no daemon "
        "answers, there is no such package, or the file cannot be written."
    )
    add_name(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=_OUTPUTS,
        default="text",
        help="text (default): a list in the order in which packages are installed; dot: for Graphviz; mermaid: for pages "
        "that render Mermaid; svg: a picture; json: for programs",
    )
    parser.add_argument("--output-file", type=path_option, metavar="FILE", help="write to this file instead of stdout")
    add_socket(parser)
    parser.set_defaults(handler=_graph)


async def fetch_graph(inspector: Inspector, name: str | None) -> Graph:
    """Return the graph of all packages, or of one package and its surroundings. Raises NoSuchPackageError."""
    graph = make_graph(await inspector.scheduler(), await inspector.packages())
    if name is None:
        return graph
    found = surroundings_of(graph, name)
    if found is None:
        meant = name.replace("/", ".", 1)
        known = any(node.name == meant for node in graph.nodes)
        hint = f"did you mean {meant}?" if known else "`wharfinger graph` draws all"
        raise NoSuchPackageError(f"no package is named {name!r}, and no package refers to it; {hint}")
    return found


def draw(graph: Graph, output: str, columns: int | None, branches: Branches) -> str:
    """Draw the graph in one of the formats; ``columns`` and ``branches`` apply to text only."""
    match output:
        case "dot":
            return graph_to_dot(graph)
        case "mermaid":
            return graph_to_mermaid(graph)
        case "svg":
            return graph_to_svg(graph)
        case "json":
            return render_json(graph_to_json(graph))
        case _:
            return graph_to_text(graph, columns, branches)


def _graph(args: argparse.Namespace) -> int:
    name, output = cast("str | None", args.name), cast("str", args.output)
    file = cast("Path | None", args.output_file)
    try:
        graph = ask(args, lambda client: fetch_graph(client, name))
        if file is None:
            document = draw(graph, output, terminal_columns(), UNICODE if is_unicode() else ASCII)
            show(document)
        else:
            document = draw(graph, output, None, UNICODE)
            _write(file, document)
    except DebugError as error:
        return print_failure(error)
    for hint in _hints(graph, output, document):
        write_note(hint)
    return 0


def _hints(graph: Graph, output: str, document: str) -> Iterator[str]:
    if not graph.nodes:
        yield "no packages: `kubectl apply` an Application or a Module, then run this command again"
    if output == "mermaid" and is_too_much(graph, document):
        yield (
            f"mermaid draws at most {MAX_EDGES} edges and {MAX_CHARACTERS} characters unless its settings (maxEdges, maxTextSize)"
            " allow more; name a package to draw only a part of the graph, or use -o svg, which has no limit"
        )


def _write(file: Path, document: str) -> None:
    try:
        file.write_text(document, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OutputFileError(f"{file}: cannot be written: {error.strerror}") from error
