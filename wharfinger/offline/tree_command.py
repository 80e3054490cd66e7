"""``wharfinger tree``: the nodes of a tree of manifests, their states after a build, and their dependencies."""

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from wharfinger.formats.encodable import write_text
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.building_command import BuildError, print_message, run_build
from wharfinger.offline.options import OptionError, add_filter, add_options, add_path, read_options
from wharfinger.offline.orchestrator.selection import SelectionError, check_filters, selected, selection_of
from wharfinger.offline.output.comparison import images_of
from wharfinger.offline.output.nodes import Node, nodes_of
from wharfinger.offline.output.nodes_outline import nodes_outline
from wharfinger.offline.output.nodes_text import (
    nodes_dot,
    nodes_json,
    nodes_mermaid,
    nodes_names,
    nodes_table,
    nodes_yaml,
)
from wharfinger.offline.output.report import report_text

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
IMAGES: Final = "images"


def _table(nodes: Sequence[Node]) -> str:
    return nodes_table(nodes, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)


_OUTPUTS: Final[Mapping[str, Callable[[Sequence[Node]], str]]] = {
    "table": _table,
    "text": nodes_outline,
    "name": nodes_names,
    "json": nodes_json,
    "yaml": nodes_yaml,
    "dot": nodes_dot,
    "mermaid": nodes_mermaid,
}


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger tree``."""
    parser.description = (
        "Build the manifests of the paths, and list their sources, Kustomizations, releases and packages, each with its "
        "state, the number of objects that it makes, and the file that declares it. With -o dot or -o mermaid, "
        "draw the dependencies instead. Exit code 0: everything was built; 1: an object could not be built; 2: wrong usage, "
        "or an unreadable path."
    )
    add_path(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=(*_OUTPUTS, IMAGES),
        default="table",
        help="table (default); text: an outline with the dependencies, in which each object is indented below its "
        "producer; name: only names; json or yaml: everything; dot or mermaid: a graph; images: the images of all "
        "containers",
    )
    add_filter(parser)
    add_options(parser)
    parser.set_defaults(handler=tree)


def tree(args: argparse.Namespace) -> int:
    """Build the paths and show their nodes."""
    try:
        options = read_options(args)
        filters = options.config.filters
        # A node shows the number of its objects and its maker, even if the filters exclude these.
        result = run_build(options.without_filters())
        nodes = nodes_of(result)
        if filters:
            check_filters(filters, result)
            selection = selection_of(result, filters)
            nodes = tuple(each for each in nodes if each.id in selection)
            result = selected(result, selection)
    except (OptionError, BuildError, SelectionError) as error:
        print_message(f"error: {error}")
        return EXIT_USAGE
    if args.output == IMAGES:
        images = sorted({image for each in result.objects for image in images_of(each.object)})
        text = "".join(f"{printable(image)}\n" for image in images)
    else:
        text = _OUTPUTS[args.output](nodes)
    write_text(sys.stdout, text)
    print_message(report_text(result))
    return EXIT_FAILED if result.failed else 0
