"""``wharfinger check``: the mistakes in a tree that can be found without a cluster."""

import argparse
import sys
from dataclasses import replace
from typing import Final, cast

import trio

import wharfinger
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.formats.encodable import encodable
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.building_command import BuildError, run_build, tell
from wharfinger.offline.checking.findings import Finding, Severity, build_findings, places_of
from wharfinger.offline.checking.references import dangling
from wharfinger.offline.checking.server_rules import OpenServer, server_findings
from wharfinger.offline.options import OptionError, add_options, add_path, read_options
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.output.findings_text import findings_json, findings_junit, findings_sarif, findings_text

EXIT_FOUND: Final = 1
EXIT_USAGE: Final = 2


def add_check(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``wharfinger check``."""
    parser.description = (
        "Build a path, and check everything that comes of it: whether it can be built, whether an API server would accept it "
        "(definitions of the tree included), and whether what objects name is there. "
        "Exit code 0: no errors; 1: errors (with --strict also warnings); 2: wrong usage, or an unreadable path."
    )
    add_path(parser)
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "sarif", "junit"),
        default="text",
        help="text (default), json, sarif or junit",
    )
    add_options(parser)
    parser.set_defaults(handler=check)


def check(args: argparse.Namespace) -> int:
    """Check a path and print the findings."""
    try:
        result = run_build(read_options(args))
        findings = trio.run(_findings, result, cast("OpenServer", args.open_server))
        if isinstance(findings, ClusterError):
            raise BuildError(f"the manifests cannot be judged: {findings}")
    except (OptionError, BuildError) as error:
        tell(f"error: {error}")
        return EXIT_USAGE
    objects = len(result.objects)
    if args.output == "json":
        text = findings_json(findings, objects)
    elif args.output == "sarif":
        text = findings_sarif(findings, wharfinger.__version__)
    elif args.output == "junit":
        text = findings_junit(findings, objects, strict=args.strict)
    else:
        text = printable(findings_text(findings, objects), allow="\n")
    sys.stdout.write(encodable(text, sys.stdout.encoding or "utf-8"))
    sys.stdout.flush()
    counted = [each for each in findings if args.strict or each.severity is Severity.ERROR]
    return EXIT_FOUND if counted else 0


async def _findings(result: Result, open_server: OpenServer) -> list[Finding] | ClusterError:
    """Return all findings with their places, or the error of the server."""
    objects = result.objects
    try:
        async with open_server() as client:
            by_server = await server_findings(objects, client)
    except ClusterError as error:
        return error
    places = places_of(result)
    found = [*build_findings(result), *by_server, *dangling(objects)]
    return [
        each if each.place is not None or each.id is None else replace(each, place=places.get(each.id))
        for each in found
    ]
