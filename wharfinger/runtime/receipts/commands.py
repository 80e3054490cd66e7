"""The command ``wharfinger package rights``: the smallest roles with which a package can be installed, upgraded and removed."""

import argparse
import json
import logging
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.formats.encodable import encodable
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object
from wharfinger.formats.option_values import path_option
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.yaml.reader import read_yaml_documents
from wharfinger.packages.author.package_check import read_given_settings
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.runtime.controllers.state_dir import StartError
from wharfinger.runtime.daemon.engine import ENGINE
from wharfinger.runtime.receipts.receipt import Receipt, make_receipt
from wharfinger.runtime.receipts.rights import grown
from wharfinger.runtime.receipts.subject import Subject, next_version, read_subject
from wharfinger.runtime.receipts.text import growth_text, receipt_json, receipt_text
from wharfinger.runtime.receipts.trial import OpenServer, Plan, Programs

EXIT_FAILED: Final = 1
EXIT_GREW: Final = 2
MAX_OBJECTS: Final = 4 * 1024 * 1024


def add_rights(actions: "argparse._SubParsersAction[argparse.ArgumentParser]", open_server: OpenServer) -> None:
    """Add ``package rights PATH`` to the actions of ``wharfinger package``; ``open_server`` opens an API server."""
    rights = actions.add_parser(
        "rights",
        help="show the smallest roles with which a package can be installed, upgraded and removed",
        description="Install, upgrade and remove a package on an embedded control plane, and record each request that is "
        "made for the package. Determine the smallest roles that allow these requests, and do everything again with only "
        "these roles, to prove that they are sufficient. Print the roles: for the package itself, its hooks, an upgrade, and "
        "the removal. The hooks of the package are run with the credentials of the embedded control plane. If the schedule "
        "of a hook is not due, or no object that the hook watches exists, the hook is not run, and the roles lack the rights "
        "that this hook needs. --objects creates objects that hooks watch. Exit code 0: done; 1: the roles cannot be "
        "determined; 2: wrong usage, or, with --against, the package needs rights that the older version did not need.",
    )
    rights.add_argument("path", type=path_option, metavar="PATH", help="the package's folder")
    rights.add_argument(
        "--against",
        type=path_option,
        metavar="OLD",
        help="the folder of an older version of the package; also print the rights that PATH needs and the older version "
        "did not need",
    )
    rights.add_argument(
        "--settings",
        type=path_option,
        metavar="FILE",
        help="a YAML or JSON file with the package's settings (default: none)",
    )
    rights.add_argument(
        "--objects",
        type=path_option,
        metavar="FILE",
        help="a YAML file with objects that are created after the package was installed; hooks that watch such objects are "
        "then run",
    )
    rights.add_argument(
        "-n",
        "--namespace",
        default="",
        metavar="NAMESPACE",
        help="the namespace of the release (default: the namespace default for an Application, wharfinger-system for a "
        "Module)",
    )
    rights.add_argument(
        "--module",
        action="store_true",
        help="install the package as a Module, if it allows both kinds (default: as an Application, unless the folder has "
        "the layout of a module)",
    )
    rights.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="time limit for each step (default: %(default)g)",
    )
    rights.add_argument(
        "--resource-names",
        action="store_true",
        help="restrict the rules to the names of the objects for which requests were recorded, except rules for the verbs "
        "create, deletecollection, list and watch (default: the rules allow all objects of each resource)",
    )
    rights.add_argument("--helm", default="helm", metavar="PROGRAM", help="the Helm program (default: %(default)s)")
    rights.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="yaml (default) or json")
    rights.set_defaults(handler=rights_command, open_server=open_server)


@dataclass(frozen=True, slots=True)
class _Asked:
    plan: Plan
    old: Plan | None
    programs: Programs
    with_names: bool = False


def rights_command(args: argparse.Namespace) -> int:
    """Make the receipt and print it."""
    # A refused request is a result of the trial, and not a problem to log.
    logging.getLogger("wharfinger").setLevel(logging.CRITICAL)
    try:
        asked = _asked(args)
        receipt, old = trio.run(_receipts, asked, cast("OpenServer", args.open_server))
    except (PackageError, ClusterError, StartError) as error:
        return _failed(str(error))
    except BaseExceptionGroup as group:
        return _failed(_leaf(group))
    subject, growth = asked.plan.subject, None if old is None else grown(old.rights, receipt.rights)
    if args.output == "json":
        _print(json.dumps(receipt_json(subject, receipt, growth), indent=2) + "\n")
    else:
        _print(receipt_text(subject, receipt))
        if growth is not None:
            _print("---\n" + growth_text(growth, str(args.against)))
    return EXIT_GREW if growth else 0


def _asked(args: argparse.Namespace) -> _Asked:
    """Read the files that the arguments name. Blocking. Raises PackageError."""
    helm = shutil.which(cast("str", args.helm))
    if helm is None:
        raise ArtifactError(f"no {args.helm!r} on PATH; install Helm 3.14 or newer, or name it with --helm")
    engine = shutil.which(ENGINE)
    if not args.timeout > 0:
        raise ArtifactError(f"--timeout {args.timeout:g}: expected a number of seconds above 0")
    subject = _subject(args, cast("Path", args.path))
    against = cast("Path | None", args.against)
    objects = _objects(cast("Path | None", args.objects))
    plan = plan_of(subject, objects, args.timeout)
    old = None
    if against is not None:
        older = _subject(args, against)
        if older.id != subject.id:
            raise ArtifactError(
                f"{against} is {older.id.kind} {older.id}, but {args.path} is {subject.id.kind} {subject.id}; give "
                "two versions of one package"
            )
        old = plan_of(older, objects, args.timeout)
        plan = replace(plan, old=against, versions=_upgrade(older.version, subject.version))
    programs = Programs(Path(helm).absolute(), None if engine is None else Path(engine).absolute())
    return _Asked(plan, old, programs, args.resource_names)


def plan_of(subject: Subject, objects: tuple[JsonObject, ...], limit_s: float) -> Plan:
    """Return the plan of a trial of one version: its files are installed, and upgraded to the same files with the next version
    number. Raises ArtifactError.
    """
    return Plan(subject, subject.folder, (subject.version, next_version(subject.version)), objects, limit_s)


def _upgrade(old: str, new: str) -> tuple[str, str]:
    return (old, new if new != old else next_version(old))


def _subject(args: argparse.Namespace, folder: Path) -> Subject:
    settings: JsonObject = {}
    if (path := cast("Path | None", args.settings)) is not None:
        settings = read_given_settings(_read(path), str(path), 0).settings
    return read_subject(folder, cast("str", args.namespace), settings, as_module=True if args.module else None)


def _objects(path: Path | None) -> tuple[JsonObject, ...]:
    if path is None:
        return ()
    try:
        documents = read_yaml_documents(_read(path), what=str(path))
        return tuple(as_object(document, f"{path}, line {line}") for document, line in documents)
    except FormatError as error:
        raise ArtifactError(str(error)) from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_OBJECTS + 1)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_OBJECTS:
        raise ArtifactError(f"{path}: is over the limit of {MAX_OBJECTS} bytes")
    return data


async def _receipts(asked: _Asked, open_server: OpenServer) -> tuple[Receipt, Receipt | None]:
    with tempfile.TemporaryDirectory(prefix="wharfinger-rights-") as name:
        folder = Path(name)
        old = None
        if asked.old is not None:
            old = await make_receipt(asked.old, asked.programs, open_server, folder / "old")
        new = folder / "new"
        return await make_receipt(asked.plan, asked.programs, open_server, new, with_names=asked.with_names), old


def _leaf(group: BaseExceptionGroup[BaseException]) -> str:
    """Return the message of the first error in the group. Raise the group again if users cannot act on this error."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, PackageError | ClusterError | StartError):
        return str(error)
    raise group


def _print(text: str) -> None:
    print(encodable(text, sys.stdout.encoding or "utf-8"), end="")


def _failed(message: str) -> int:
    print(f"error: {printable(message)}", file=sys.stderr)
    return EXIT_FAILED
