"""The command ``wharfinger plan``: find out without a cluster which Applications and Modules would be on, and in which order they
would run.
"""

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.formats.encodable import write_text
from wharfinger.formats.option_values import path_option
from wharfinger.packages.definition.requirements import is_package_name
from wharfinger.packages.errors import StoreError
from wharfinger.runtime.plan.input import Inputs, PlanInputError, read_inputs
from wharfinger.runtime.plan.packages import open_package_folder
from wharfinger.runtime.plan.patch_changes import find_patch_tools, with_patch_changes
from wharfinger.runtime.plan.plan import Plan, judged_plan
from wharfinger.runtime.plan.platform_options import add_platform, platform_problem, version_problem
from wharfinger.runtime.plan.progress_line import open_progress_line
from wharfinger.runtime.plan.text import plan_json, plan_text, plan_yaml, printable
from wharfinger.runtime.plan.version_advice import with_versions
from wharfinger.runtime.scheduler.rules import Facts

EXIT_NOT_ON: Final = 1
EXIT_UNREADABLE: Final = 2


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger plan``."""
    parser.description = (
        "Determine, without a cluster, which of the given Applications and Modules would be on. Print the packages that "
        "would be on, in the order in which they would be installed, and for each other package the reason why it would "
        "not be on. "
        "Neither hooks nor enabled scripts are run. Exit code 0: all wanted packages would be on; 1: a wanted package "
        "would not be on; 2: wrong usage, or unreadable input."
    )
    parser.add_argument(
        "-f",
        "--filename",
        type=path_option,
        action="extend",
        nargs="+",
        required=True,
        metavar="FILE|FOLDER",
        help="the resources, as for `kubectl apply -f`: files, folders of .yaml, .yml and .json files, or - for standard "
        "input",
    )
    parser.add_argument(
        "--packages",
        type=path_option,
        required=True,
        metavar="FOLDER",
        help="the folder that contains, for each package, a folder or an OCI image layout with the name of the package",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default="default",
        metavar="NAMESPACE",
        help="namespace of Applications whose manifests name no namespace (default: the namespace %(default)s)",
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table", help="table (default), json or yaml"
    )
    facts = parser.add_argument_group(
        "facts",
        "facts about the cluster and its platform; the requirements of packages are compared with them. If a version is not "
        "known, each requirement on it counts as not met. A platform is a product, such as Deckhouse, that packages may "
        "require in a certain version.",
    )
    facts.add_argument(
        "--kubernetes-version",
        default="",
        metavar="VERSION",
        help="the version of Kubernetes (default: not known)",
    )
    add_platform(facts)
    facts.add_argument(
        "--not-bootstrapped",
        action="store_true",
        help="plan for a cluster that is not bootstrapped yet; packages of the default order, 999 (all Applications, and "
        "Modules whose files set no order), then stay off",
    )
    parser.set_defaults(handler=plan)


def plan(args: argparse.Namespace) -> int:
    """Make a plan and print it."""
    folder, namespace = cast("Path", args.packages), cast("str", args.namespace)
    if problem := _wrong_options(args):
        return _failed(problem)
    facts = Facts(
        kubernetes=args.kubernetes_version,
        platform=args.platform_version,
        bootstrapped=not args.not_bootstrapped,
        edition=args.edition,
        bundle=args.bundle,
    )
    try:
        inputs = read_inputs(cast("list[Path]", args.filename), namespace=namespace, bundled=bool(args.bundle))
        made = trio.run(_plan, inputs, folder, facts)
    except PlanInputError as error:
        return _failed(*error.lines)
    except StoreError as error:
        return _failed(str(error))
    document = {"json": partial(plan_json, facts=facts), "yaml": partial(plan_yaml, facts=facts)}.get(
        args.output, plan_text
    )
    write_text(sys.stdout, document(made))
    return EXIT_NOT_ON if made.blocked else 0


async def _plan(inputs: Inputs, folder: Path, facts: Facts) -> Plan:
    progress = Progress()
    async with open_package_folder(folder) as packages, open_progress_line(sys.stderr, progress.text):
        made, bodies = await judged_plan(inputs, packages.definition, facts, progress=progress.set)
        specs = {each.spec.id.name: each.spec for each in inputs.wanted}
        made = await with_versions(made, specs, bodies, facts, packages.index)
        return await with_patch_changes(
            made, specs, find_patch_tools(packages.scratch, facts.kubernetes), packages.tree
        )


@dataclass(slots=True)
class Progress:
    """The number of packages that were read, and the number of all packages."""

    read: int = 0
    total: int = 0

    def set(self, read: int, total: int) -> None:
        """Set the number of packages that were read, and the number of all packages."""
        self.read, self.total = read, total

    def text(self) -> str:
        """Return both numbers in words: ``3 of 12 packages read``."""
        return f"{self.read} of {self.total or '…'} packages read"


async def planned_text(files: list[Path], folder: Path, kubernetes_version: str) -> str:
    """Return the text of a plan for the tools of `wharfinger mcp`. Raises PlanInputError or StoreError."""
    if problem := version_problem("kubernetes_version", kubernetes_version):
        raise PlanInputError([problem])
    inputs = await trio.to_thread.run_sync(partial(read_inputs, files, namespace="default", bundled=False))
    facts = Facts(kubernetes=kubernetes_version)
    return plan_text(await _plan(inputs, folder, facts))


def _wrong_options(args: argparse.Namespace) -> str:
    """Return the problem with the options; empty if there is no problem."""
    folder, namespace = cast("Path", args.packages), cast("str", args.namespace)
    try:
        there = folder.is_dir()
    except OSError as error:  # the path has a name that is too long
        return f"--packages {folder}: {error.strerror}"
    if not there:
        return f"--packages {folder}: not a folder; name an existing one"
    if not is_package_name(namespace):
        return f"--namespace {namespace[:80]!r}: expected the name of a namespace"
    return version_problem("--kubernetes-version", args.kubernetes_version) or platform_problem(args)


def _failed(*lines: str) -> int:
    for line in lines:
        write_text(sys.stderr, f"error: {printable(line)}\n")
    return EXIT_UNREADABLE
