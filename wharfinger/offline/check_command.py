"""``wharfinger check``: find mistakes in a tree without a cluster."""

import argparse
import sys
from dataclasses import replace
from typing import Final, cast

import trio

import wharfinger
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.formats.encodable import write_text
from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.building_command import BuildError, print_message, run_build
from wharfinger.offline.checking.findings import Finding, Severity, build_findings, places_of
from wharfinger.offline.checking.references import dangling
from wharfinger.offline.checking.server_rules import DEFINITION, OpenServer, server_findings
from wharfinger.offline.options import OfflineOptions, OptionError, add_filter, add_options, add_path, read_options
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.selection import SelectionError, check_filters, selected, selection_of
from wharfinger.offline.output.findings_text import findings_json, findings_junit, findings_sarif, findings_text
from wharfinger.runtime.plan.progress_line import open_progress_line

EXIT_FOUND: Final = 1
EXIT_USAGE: Final = 2


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger check``."""
    parser.description = (
        "Build the manifests of the paths, and check every object: whether it could be built, whether an API server would "
        "accept it, and whether the objects to which it refers exist. Custom resources are checked with the custom resource "
        "definitions in the tree. Exit code 0: no errors; 1: errors (with --strict: errors or warnings); 2: wrong usage, or an "
        "unreadable path."
    )
    add_path(parser)
    parser.add_argument("--strict", action="store_true", help="count warnings as errors")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "sarif", "junit"),
        default="text",
        help="text (default), json, sarif or junit",
    )
    add_filter(parser)
    add_options(parser)
    parser.set_defaults(handler=check)


def check(args: argparse.Namespace) -> int:
    """Check the paths and print the findings."""
    try:
        options = read_options(args)
        # References may point to objects that the filters exclude, and definitions may be anywhere in the tree.
        result = run_build(options.without_filters())
        check_filters(options.config.filters, result)
        findings = trio.run(_findings, result, cast("OpenServer", args.open_server), options)
        if isinstance(findings, ClusterError):
            raise BuildError(f"the manifests cannot be checked: {findings}")
    except (OptionError, BuildError, SelectionError) as error:
        print_message(f"error: {error}")
        return EXIT_USAGE
    objects = len(_chosen(result, options).objects)
    if args.output == "json":
        text = findings_json(findings, objects)
    elif args.output == "sarif":
        text = findings_sarif(findings, wharfinger.__version__)
    elif args.output == "junit":
        text = findings_junit(findings, objects, strict=args.strict)
    else:
        text = printable(findings_text(findings, objects), allow="\n")
    write_text(sys.stdout, text)
    counted = [each for each in findings if args.strict or each.severity is Severity.ERROR]
    return EXIT_FOUND if counted else 0


def _chosen(result: Result, options: OfflineOptions) -> Result:
    filters = options.config.filters
    return selected(result, selection_of(result, filters)) if filters else result


async def _findings(result: Result, open_server: OpenServer, options: OfflineOptions) -> list[Finding] | ClusterError:
    """Return all findings with their places, or the error of the embedded control plane."""
    chosen = _chosen(result, options)
    ids = {each.id for each in chosen.objects}
    applied = [each for each in result.objects if each.id in ids or each.id.kind == DEFINITION]
    try:
        step = f"applying {counted(len(applied), 'object')} to an empty control plane"
        async with open_progress_line(sys.stderr, lambda: step, wanted=options.progress), open_server() as client:
            by_server = await server_findings(applied, client)
    except ClusterError as error:
        return error
    places = places_of(result)
    of_objects = [*by_server, *dangling(result.objects, result.internal)]
    found = [*build_findings(chosen), *(each for each in of_objects if each.id is None or each.id in ids)]
    return [
        each if each.place is not None or each.id is None else replace(each, place=places.get(each.id))
        for each in found
    ]
