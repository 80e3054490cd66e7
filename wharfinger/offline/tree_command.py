"""``wharfinger tree``: what a tree of manifests holds, what became of it in a build, and what depends on what."""

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from wharfinger.formats.encodable import encodable
from wharfinger.offline.building_command import BuildError, run_build, tell
from wharfinger.offline.options import OptionError, add_options, add_path, read_options
from wharfinger.offline.output.nodes import Node, nodes_of
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


def _table(nodes: Sequence[Node]) -> str:
    return nodes_table(nodes, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)


_OUTPUTS: Final[Mapping[str, Callable[[Sequence[Node]], str]]] = {
    "table": _table,
    "name": nodes_names,
    "json": nodes_json,
    "yaml": nodes_yaml,
    "dot": nodes_dot,
    "mermaid": nodes_mermaid,
}


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``wharfinger tree``."""
    parser.description = (
        "Build a path, and show its sources, Kustomizations, releases and packages: what became of each, how many objects it "
        "makes, and the file that declares it; or draw what depends on what. "
        "Exit code 0: everything was built; 1: something failed; 2: wrong usage, or an unreadable path."
    )
    add_path(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=tuple(_OUTPUTS),
        default="table",
        help="table (default); name: names only; json or yaml: everything; dot or mermaid: a graph",
    )
    add_options(parser)
    parser.set_defaults(handler=tree)


def tree(args: argparse.Namespace) -> int:
    """Build a path and show its nodes."""
    try:
        result = run_build(read_options(args))
    except (OptionError, BuildError) as error:
        tell(f"error: {error}")
        return EXIT_USAGE
    text = _OUTPUTS[args.output](nodes_of(result))
    sys.stdout.write(encodable(text, sys.stdout.encoding or "utf-8"))
    sys.stdout.flush()
    tell(report_text(result))
    return EXIT_FAILED if result.failed else 0
