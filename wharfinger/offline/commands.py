"""``wharfinger build``: the manifests of a tree, a chart or a package, without a cluster."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from wharfinger.formats.encodable import write_text
from wharfinger.formats.option_values import path_option
from wharfinger.offline.building_command import BuildError, print_message, run_build
from wharfinger.offline.options import OptionError, add_filter, add_options, add_path, read_options
from wharfinger.offline.output.documents import json_documents, yaml_documents
from wharfinger.offline.output.folder import FolderError, write_folder
from wharfinger.offline.output.report import report_text, summary
from wharfinger.offline.output.wiped_secrets import with_wiped_secrets

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2


def add_build(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger build``."""
    parser.description = (
        "Print the manifests that a cluster would get from a chart, from a package, or from a folder of manifests (Flux, "
        "Argo CD and Wharfinger resources). No cluster is needed. An object that cannot be built is reported with its file "
        "and line, and all objects that do not depend on it are built. Exit code 0: everything was built; 1: an object "
        "could not be built; 2: wrong usage, or an unreadable path."
    )
    add_path(parser)
    parser.add_argument(
        "--output",
        type=path_option,
        metavar="FOLDER",
        help="write the manifests into this folder, one file for each producer (a release, a Kustomization or a package) "
        "(default: print the manifests)",
    )
    parser.add_argument("-o", "--format", choices=("yaml", "json"), default="yaml", help="yaml (default) or json")
    parser.add_argument("--wipe-secrets", action="store_true", help="replace the values of Secrets with placeholders")
    add_filter(parser)
    add_options(parser)
    parser.set_defaults(handler=build)


def build(args: argparse.Namespace) -> int:
    """Build paths, and print or write their manifests."""
    try:
        options = read_options(args)
        result = run_build(options)
        if args.wipe_secrets:
            result = replace(result, manifests=with_wiped_secrets(result.manifests))
        folder = cast("Path | None", args.output)
        if folder is not None:
            write_folder(folder, result.manifests)
        else:
            text = json_documents if args.format == "json" else yaml_documents
            write_text(sys.stdout, text(result.objects))
    except (OptionError, BuildError, FolderError) as error:
        print_message(f"error: {error}")
        return EXIT_USAGE
    print_message(report_text(result))
    if result.failed or folder is not None or not result.objects:
        print_message(f"{summary(result)}\n")
    return EXIT_FAILED if result.failed else 0
