"""``wharfinger package push``, ``inspect`` and ``check``: the commands for authors of packages."""

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

import trio

from wharfinger.formats.encodable import encodable
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json
from wharfinger.formats.option_values import path_option
from wharfinger.packages.author.check_report import report_json, report_text
from wharfinger.packages.author.package_check import (
    CheckReport,
    GivenSettings,
    HookCheck,
    check_package,
    read_given_settings,
)
from wharfinger.packages.charts.chart import MAX_CHART_FILE
from wharfinger.packages.definition.conversions import MAX_VERSION, JqRunner
from wharfinger.packages.errors import AddressError, ArtifactError, PackageError
from wharfinger.packages.registry.address import (
    RepositoryAddress,
    version_of_tag,
)
from wharfinger.packages.registry.manifest import HELM_CONFIG, PACKAGE_CONFIG
from wharfinger.packages.registry.pusher import Package, load_package, push_package
from wharfinger.packages.registry.registry import Manifest, Registry
from wharfinger.packages.settings.cel_pool import open_cel_pool
from wharfinger.packages.settings.check import SettingsChecker
from wharfinger.packages.settings.values import MAX_VALUES
from wharfinger.packages.targets import Target, add_registry_arguments, open_target, read_file, read_target
from wharfinger.packages.trust.claims import Claim

if TYPE_CHECKING:
    from wharfinger.packages.trust.signer import Signer

OpenJq: TypeAlias = Callable[[], AbstractAsyncContextManager[JqRunner]]
"""A function that opens the jq runner of `check`. The composition root passes it, because ``wharfinger.packages`` may not
import the daemon's pool of jq workers.
"""

MAX_KEY: Final = 64 * 1024
MAX_DIGITS: Final = 9
MAX_SHOWN: Final = 100
"""The largest number of characters of a wrong argument that an error message quotes."""

_SHOWN: Final = {
    "name": "name",
    "version": "version",
    "type": "kind",
    "appVersion": "app version",
    "kubeVersion": "kubernetes",
    "description": "description",
}


class AddAction(Protocol):
    """A function that adds an action to `wharfinger package`. The composition root passes such functions, because they are in
    modules that ``wharfinger.packages`` may not import.
    """

    def __call__(self, actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None: ...


def add_package(parser: argparse.ArgumentParser) -> None:
    """Add ``package push PATH REFERENCE``, ``package inspect REFERENCE``, ``package check FOLDER``, and further actions.

    The composition root sets a default ``more_actions`` of the parser. It is a list of functions, each of which adds one
    further action.
    """
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    push = actions.add_parser(
        "push",
        help="push a package's folder or a packed chart (.tgz)",
        description="Push a package to a registry or to a folder of OCI image layouts. The package is a packed chart "
        "(.tgz) or a folder: a folder with a package.yaml, a chart, or a module of addon-operator. A chart is pushed in the "
        "form that `helm push` uses, and every other package as an image. The same files always get the same digest.",
    )
    push.add_argument("path", type=path_option, metavar="PATH", help="the package's folder, or a chart's .tgz")
    push.add_argument(
        "reference",
        metavar="REFERENCE",
        help="host[:port]/repository[:tag], or oci-layout:FOLDER/PACKAGE[:tag] (default tag: the package's version)",
    )
    push.add_argument("--force", action="store_true", help="allow a tag that differs from the package's version")
    push.add_argument(
        "--sign",
        type=path_option,
        metavar="KEY",
        help="sign the package with this private key (PEM, PKCS #8), as cosign does; the password of an encrypted key is "
        "in $WHARFINGER_KEY_PASSWORD",
    )
    add_registry_arguments(push)
    push.set_defaults(handler=_push)
    inspect = actions.add_parser(
        "inspect",
        help="show the artifact of a reference",
        description="Show the artifact that a reference names: its digest, type, metadata and layers.",
    )
    inspect.add_argument(
        "reference",
        metavar="REFERENCE",
        help="host[:port]/repository:tag, oci-layout:FOLDER/PACKAGE:tag, or host[:port]/repository@sha256:…",
    )
    add_registry_arguments(inspect)
    inspect.set_defaults(handler=_inspect)
    _add_check(actions)
    for add in cast("Sequence[AddAction]", parser.get_default("more_actions") or ()):
        add(actions)


def _add_check(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``package check``. ``open_jq`` and ``check_hooks`` are defaults of the parser, set by the composition root."""
    check = actions.add_parser(
        "check",
        help="check a package's folder, as the daemon would",
        description="Read and check a package in the same way as the daemon: its definition, its schemas and their rules, "
        "its conversions of settings, and the files of its hooks. Test the conversions with the examples in "
        "openapi/conversions/testcases.yaml. With --settings, check settings against the schemas. Hooks are not run. Exit "
        "code 0: no errors; 1: errors.",
    )
    check.add_argument("folder", type=path_option, metavar="FOLDER", help="the package's folder")
    check.add_argument(
        "--settings",
        type=path_option,
        metavar="FILE",
        help="a YAML or JSON file with settings to check; - is standard input",
    )
    check.add_argument(
        "--settings-version",
        type=_version,
        default=0,
        metavar="N",
        help="the version of the settings schema for which the settings are written (default: the newest)",
    )
    check.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text (default) or json")
    check.set_defaults(handler=_check)


def _push(args: argparse.Namespace) -> int:
    return run_lines(partial(_push_async, args))


def _inspect(args: argparse.Namespace) -> int:
    return run_lines(partial(_inspect_async, args))


def _check(args: argparse.Namespace) -> int:
    path, folder = cast("Path | None", args.settings), cast("Path", args.folder)
    if not folder.is_dir():
        why = "it is a file, not a folder" if folder.exists() else "no such folder"
        return _failed(ArtifactError(f"{folder}: {why}; name the folder with the package's files"))
    try:
        given = None if path is None else _given(path, cast("int", args.settings_version))
    except PackageError as error:
        return _failed(error)
    report = trio.run(_check_async, folder, cast("OpenJq", args.open_jq), given, cast("HookCheck", args.check_hooks))
    if isinstance(report, PackageError):
        return _failed(report)
    _print(report_json(report) if args.output == "json" else report_text(report))
    return 0 if report.passed else 1


async def _check_async(
    folder: Path, open_jq: OpenJq, given: GivenSettings | None, hooks: HookCheck
) -> CheckReport | PackageError:
    """Return the report or the error. The error is not raised, because the nurseries of the pools would wrap it in an exception
    group.
    """
    async with open_jq() as jq, open_cel_pool(None, workers=1) as rules:
        try:
            return await check_package(folder, SettingsChecker(jq, rules), given, hooks=hooks)
        except PackageError as error:
            return error


def _given(path: Path, version: int) -> GivenSettings:
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_VALUES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_VALUES + 1)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
    return read_given_settings(data, str(path), version)


def _version(text: str) -> int:
    """Return the argument as a version of the settings schema. Raises ArgumentTypeError."""
    if len(text) > MAX_DIGITS or not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_VERSION:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {MAX_VERSION}, found {text[:MAX_SHOWN]!r}")
    return int(text)


def run_lines(work: Callable[[], Awaitable[list[str]]]) -> int:
    """Run the work of a command, and print the lines that it returns; return the exit code."""
    try:
        lines = trio.run(work)
    except PackageError as error:
        return _failed(error)
    for line in lines:
        _print(_printable(line))
    return 0


def _print(text: str) -> None:
    print(encodable(text, sys.stdout.encoding or "utf-8"))


def _failed(error: PackageError) -> int:
    hint = "; the problem may be temporary, try again" if error.transient else ""
    print(f"error: {_printable(str(error))}{hint}", file=sys.stderr)
    return 1


async def _push_async(args: argparse.Namespace) -> list[str]:
    target = read_target(str(args.reference), plain_http=bool(args.plain_http))
    if target.digest is not None:
        raise AddressError(
            f"{target}: expected a tag, found a digest; give a tag, or leave it out to use the package's version as the tag"
        )
    path: Path = args.path
    package = await load_package(path, target.repository.rpartition("/")[2])
    tag = _tag_to_push(package, target, force=bool(args.force))
    key = _signing_key(cast("Path | None", args.sign))  # read before anything is pushed
    lines: list[str] = []
    async with open_target(args, target) as registry:
        descriptor = await push_package(package, registry, target.repository, tag)
        lines.append(f"pushed {replace(target, tag=tag)} {descriptor.digest}")
        if key is not None:
            reference = str(target.place) if isinstance(target.place, RepositoryAddress) else target.repository
            signed = await key.sign(
                registry, target.repository, Claim(descriptor.digest, reference, version_of_tag(tag))
            )
            lines.append(f"signed with {args.sign} ({key.fingerprint}) {signed.digest}")
    return lines


def _signing_key(path: Path | None) -> "Signer | None":
    """Return the signer with the key in a file; None without a file. Raises PackageError."""
    if path is None:
        return None
    from wharfinger.packages.trust.signer import load_signer  # noqa: PLC0415 - cryptography takes 20 MB

    return load_signer(read_file(path, MAX_KEY), os.environ.get("WHARFINGER_KEY_PASSWORD", ""), str(path))


def _tag_to_push(package: Package, target: Target, *, force: bool) -> str:
    """Return the given tag, or the tag of the package's version. Raises AddressError if there is neither, or if they
    differ and ``force`` is False.
    """
    if not target.tag and not package.tag:
        raise AddressError(f"{target}: {package.name} has no version; give a tag, such as {target}:1.0.0")
    if target.tag and package.tag and target.tag != package.tag and not force:
        raise AddressError(
            f"{target}: {package.name} has version {package.version}, which is pushed as {package.tag}; give that "
            "tag or no tag, correct the version, or push it under the given tag with --force"
        )
    return target.tag or package.tag


async def _inspect_async(args: argparse.Namespace) -> list[str]:
    target = read_target(str(args.reference), plain_http=bool(args.plain_http))
    async with open_target(args, target) as registry:
        digest = target.digest
        if digest is None:
            if not target.tag:
                raise AddressError(f"{target}: give a tag or a digest, such as {target}:1.0.0")
            digest = (await registry.resolve(target.repository, target.tag)).digest
        manifest = await registry.manifest(target.repository, digest)
        metadata = await _metadata(registry, target.repository, manifest)
    return _described(target, manifest, metadata)


async def _metadata(registry: Registry, repository: str, manifest: Manifest) -> JsonObject:
    """Return the config of a chart or package; {} for other artifacts. Raises PackageError."""
    if manifest.config.media_type not in {HELM_CONFIG, PACKAGE_CONFIG}:
        return {}
    what = f"config {manifest.config.digest}"
    if manifest.config.size > MAX_CHART_FILE:
        raise ArtifactError(f"{what}: {manifest.config.size} bytes is over the limit of {MAX_CHART_FILE}")
    async with registry.blob(repository, manifest.config) as chunks:
        data = b"".join([chunk async for chunk in chunks])
    try:
        return as_object(decode_json(data, max_bytes=MAX_CHART_FILE, what=what), what)
    except FormatError as error:
        raise ArtifactError(str(error)) from error


def _described(target: Target, manifest: Manifest, metadata: JsonObject) -> list[str]:
    rows = [
        ("reference", str(target)),
        ("digest", str(manifest.descriptor.digest)),
        ("type", manifest.artifact_type),
    ]
    for key, label in _SHOWN.items():
        value = metadata.get(key)
        if isinstance(value, str | int | float):
            rows.append((label, str(value)))
    rows += [("layer", f"{layer.digest}  {layer.size} bytes  {layer.media_type}") for layer in manifest.layers]
    return [f"{label:<12} {text}" for label, text in rows]


def _printable(text: str) -> str:
    """Return untrusted text as one line without control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
