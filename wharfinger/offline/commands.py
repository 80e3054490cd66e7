"""``wharfinger build``: the manifests of a tree, a chart or a package, without a cluster."""

import argparse
import sys
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.formats.encodable import encodable
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.options import OfflineOptions, OptionError, add_options, add_path, read_options
from wharfinger.offline.orchestrator.orchestrator import open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.single import build_package, is_package
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.output.documents import json_documents, yaml_documents
from wharfinger.offline.output.folder import FolderError, write_folder
from wharfinger.offline.output.report import report_text, summary
from wharfinger.packages.errors import PackageError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2


def add_build(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``wharfinger build``."""
    parser.description = (
        "Print the manifests that a cluster would get from a chart, a package, or a folder of manifests with Flux and "
        "Wharfinger resources. No cluster is needed. What cannot be built is reported with its file and line, and "
        "everything that it does not affect is built. "
        "Exit code 0: everything was built; 1: something failed; 2: wrong usage, or an unreadable path."
    )
    add_path(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="write one file for each producer into this folder (default: print all manifests)",
    )
    parser.add_argument("-o", "--format", choices=("yaml", "json"), default="yaml", help="yaml (default) or json")
    add_options(parser)
    parser.set_defaults(handler=build)


def build(args: argparse.Namespace) -> int:
    """Build a path, and print or write its manifests."""
    try:
        options = read_options(args)
        result = run_build(options)
        folder = cast("Path | None", args.output)
        if folder is not None:
            write_folder(folder, result.manifests)
        else:
            text = json_documents if args.format == "json" else yaml_documents
            sys.stdout.write(encodable(text(result.objects), sys.stdout.encoding or "utf-8"))
            sys.stdout.flush()
    except (OptionError, TreeError, FolderError, PackageError) as error:
        return _not_done(str(error))
    tell(report_text(result))
    if result.failed or folder is not None:
        tell(f"{summary(result)}\n")
    return EXIT_FAILED if result.failed else 0


def run_build(options: OfflineOptions) -> Result:
    """Build the path of the options. Raises TreeError or PackageError."""
    result = trio.run(_build, options)
    if isinstance(result, Exception):
        raise result
    return result


async def _build(options: OfflineOptions) -> Result | TreeError | PackageError:
    """Return the result, or the error: one raised between the pools would come out of their nurseries in a group."""
    try:
        async with open_tools(options.tools) as tools:
            try:
                if await trio.to_thread.run_sync(is_package, options.config.path):
                    request = options.package(options.config.path)
                    return await build_package(request, tools, options.config.options)
                async with open_orchestrator(options.config, tools) as orchestrator:
                    return await orchestrator.render()
            except (TreeError, PackageError) as error:
                return error
    except PackageError as error:
        return error


def tell(text: str) -> None:
    """Print a text for people to stderr, without anything that a terminal would obey."""
    lines = (printable(line) for line in text.splitlines())
    sys.stderr.write(encodable("".join(f"{line}\n" for line in lines), sys.stderr.encoding or "utf-8"))


def _not_done(why: str) -> int:
    tell(f"error: {why}\n")
    return EXIT_USAGE
