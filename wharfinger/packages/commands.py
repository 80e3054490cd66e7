"""``wharfinger package push``, ``inspect`` and ``check``: the commands for authors of packages."""

import argparse
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias, cast

import trio

from wharfinger.formats.encodable import encodable
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json
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
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import AddressError, ArtifactError, PackageError
from wharfinger.packages.registry.address import RepositoryAddress, is_repository, is_tag, parse_reference
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_config import MAX_DOCKER_CONFIG, read_docker_config
from wharfinger.packages.registry.manifest import HELM_CONFIG, PACKAGE_CONFIG
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import Package, load_package, push_package
from wharfinger.packages.registry.registry import Manifest, Registry, WritableRegistry
from wharfinger.packages.registry.wire import MAX_CA
from wharfinger.packages.settings.cel_pool import open_cel_pool
from wharfinger.packages.settings.check import SettingsChecker
from wharfinger.packages.settings.values import MAX_VALUES

LAYOUT: Final = "oci-layout:"
OpenJq: TypeAlias = Callable[[], AbstractAsyncContextManager[JqRunner]]
"""A function that opens the jq runner of `check`. The daemon's pool is above this part, so the composition root passes it."""

MAX_PASSWORD: Final = 64 * 1024
MAX_DIGITS: Final = 9
MAX_SHOWN: Final = 100
"""Characters of a wrong argument that an error message quotes."""

_SHOWN: Final = {
    "name": "name",
    "version": "version",
    "type": "kind",
    "appVersion": "app version",
    "kubeVersion": "kubernetes",
    "description": "description",
}


class AddAction(Protocol):
    """A function that adds an action to `wharfinger package` for a part above this one."""

    def __call__(self, actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None: ...


def add_package(parser: argparse.ArgumentParser) -> None:
    """Add ``package push PATH REFERENCE``, ``package inspect REFERENCE``, ``package check FOLDER``, and further actions.

    ``more_actions`` is a default of the parser, set by the composition root: each adds an action of its own.
    """
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    push = actions.add_parser(
        "push",
        help="push a package's folder or a packed chart (.tgz)",
        description="Push a package's folder (package.yaml, a module folder, a chart) or a packed chart (.tgz). A chart is "
        "pushed as `helm push` does; every other package as an image. The same files always have the same digest.",
    )
    push.add_argument("path", type=Path, metavar="PATH", help="the package's folder, or a chart's .tgz")
    push.add_argument(
        "reference",
        metavar="REFERENCE",
        help="host[:port]/repository[:tag], or oci-layout:FOLDER/PACKAGE[:tag]; without a tag, that of the package's version",
    )
    push.add_argument("--force", action="store_true", help="push under a tag that is not the package's version")
    _add_registry_arguments(push)
    push.set_defaults(handler=_push)
    inspect = actions.add_parser(
        "inspect",
        help="show the artifact that a reference names",
        description="Show the artifact that a reference names: its digest, type, metadata and layers.",
    )
    inspect.add_argument(
        "reference",
        metavar="REFERENCE",
        help="host[:port]/repository:tag, or @sha256:…, or oci-layout:FOLDER/PACKAGE:tag",
    )
    _add_registry_arguments(inspect)
    inspect.set_defaults(handler=_inspect)
    _add_check(actions)
    for add in cast("Sequence[AddAction]", parser.get_default("more_actions") or ()):
        add(actions)


def _add_check(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``package check``. ``open_jq`` and ``check_hooks`` are defaults of the parser, set by the composition root."""
    check = actions.add_parser(
        "check",
        help="check a package's folder, as the daemon would",
        description="Read a package as the daemon does when it loads one: its description, schemas and their rules, "
        "conversions of settings, and the files of hooks. Convert the package's examples (openapi/conversions/testcases.yaml) "
        "and, with --settings, check settings against it. The exit code is 0 without errors, else 1. Hooks are not run.",
    )
    check.add_argument("folder", type=Path, metavar="FOLDER", help="the package's folder")
    check.add_argument(
        "--settings", type=Path, metavar="FILE", help="settings to check, YAML or JSON; - is standard input"
    )
    check.add_argument(
        "--settings-version",
        type=_version,
        default=0,
        metavar="N",
        help="the version of the schema that the settings are written for (default: the newest)",
    )
    check.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text (default) or json")
    check.set_defaults(handler=_check)


def _add_registry_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plain-http",
        action="store_true",
        help="use http instead of https (the default for loopback registries)",
    )
    parser.add_argument(
        "--ca",
        "--ca-file",
        type=Path,
        metavar="FILE",
        dest="ca",
        help="additional certificate authorities to trust, PEM",
    )
    parser.add_argument("--username", metavar="NAME", help="user name for the registry")
    parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    parser.add_argument(
        "--token-realm",
        action="append",
        default=[],
        metavar="HOST",
        help="a host outside of the registry's domain that may get the login when the registry names it (may be repeated)",
    )
    parser.add_argument(
        "--docker-config",
        type=Path,
        metavar="FILE",
        help="logins, as `docker login` writes them (default: $DOCKER_CONFIG/config.json or ~/.docker/config.json, if it exists)",
    )


def _push(args: argparse.Namespace) -> int:
    return _run(partial(_push_async, args))


def _inspect(args: argparse.Namespace) -> int:
    return _run(partial(_inspect_async, args))


def _check(args: argparse.Namespace) -> int:
    path, folder = cast("Path | None", args.settings), cast("Path", args.folder)
    if not folder.is_dir():
        return _failed(ArtifactError(f"{folder}: no such folder; name the one that has the package's files"))
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
    """Return the report, or the error: an error raised inside the pools would come out of their nurseries wrapped."""
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
    """Return the version in an argument. Raises ArgumentTypeError."""
    if len(text) > MAX_DIGITS or not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_VERSION:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {MAX_VERSION}, found {text[:MAX_SHOWN]!r}")
    return int(text)


def _run(work: Callable[[], Awaitable[list[str]]]) -> int:
    try:
        lines = trio.run(work)
    except PackageError as error:
        return _failed(error)
    for line in lines:
        _print(line)
    return 0


def _print(text: str) -> None:
    print(encodable(text, sys.stdout.encoding or "utf-8"))


def _failed(error: PackageError) -> int:
    hint = "; this may pass by itself, try again" if error.transient else ""
    print(f"error: {_printable(str(error))}{hint}", file=sys.stderr)
    return 1


async def _push_async(args: argparse.Namespace) -> list[str]:
    target = _target(args)
    if target.digest is not None:
        raise AddressError(f"{target}: a digest cannot be pushed to; give a tag, or none for the package's version")
    path: Path = args.path
    package = await load_package(path, target.repository.rpartition("/")[2])
    tag = _tag_to_push(package, target, force=bool(args.force))
    async with _opened(args, target) as registry:
        descriptor = await push_package(package, registry, target.repository, tag)
    return [f"pushed {replace(target, tag=tag)} {descriptor.digest}"]


def _tag_to_push(package: Package, target: "_Target", *, force: bool) -> str:
    """Return the given tag, or that of the package's version. Raises AddressError if there is neither, or if they differ."""
    if not target.tag and not package.tag:
        raise AddressError(f"{target}: {package.name} has no version; give a tag, such as {target}:1.0.0")
    if target.tag and package.tag and target.tag != package.tag and not force:
        raise AddressError(
            f"{target}: {package.name} has version {package.version}, which is pushed as {package.tag}; give that tag "
            "or none, correct the version, or push it under the given tag with --force"
        )
    return target.tag or package.tag


async def _inspect_async(args: argparse.Namespace) -> list[str]:
    target = _target(args)
    async with _opened(args, target) as registry:
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


def _described(target: "_Target", manifest: Manifest, metadata: JsonObject) -> list[str]:
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
    return [f"{label:<12} {_printable(text)}" for label, text in rows]


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of a command's REFERENCE: a place in a registry, or in a folder of OCI layouts."""

    place: RepositoryAddress | Path
    repository: str
    tag: str
    digest: Digest | None

    def __str__(self) -> str:
        base = f"{LAYOUT}{self.place / self.repository}" if isinstance(self.place, Path) else str(self.place)
        return base + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def _target(args: argparse.Namespace) -> _Target:
    text = str(args.reference)
    if not text.startswith(LAYOUT):
        reference = parse_reference(text, insecure=bool(args.plain_http))
        return _Target(reference.repository, reference.repository.path, reference.tag, reference.digest)
    rest, at, digest = text.removeprefix(LAYOUT).partition("@sha256:")
    path, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        path, tag = rest, ""
    folder, name = os.path.split(path)
    if not is_repository(name) or (tag and not is_tag(tag)):
        raise AddressError(
            f"{text[:300]!r}: expected {LAYOUT}FOLDER/PACKAGE[:TAG], such as {LAYOUT}./packages/web:1.0.0"
        )
    return _Target(Path(folder), name, tag, Digest(f"sha256:{digest}") if at else None)


@asynccontextmanager
async def _opened(args: argparse.Namespace, target: _Target) -> AsyncIterator[WritableRegistry]:
    if isinstance(target.place, Path):
        yield OciLayout(target.place)
        return
    credentials = _credentials(args, target.place)
    if credentials is not None:
        credentials = replace(credentials, realms=tuple(str(host).lower() for host in args.token_realm))
    async with open_registry(
        target.place.registry, scheme=target.place.scheme, credentials=credentials, ca=_authorities(args)
    ) as registry:
        yield registry


def _authorities(args: argparse.Namespace) -> str:
    path: Path | None = args.ca
    if path is None:
        return ""
    text = _read(path, MAX_CA).decode("ascii", "replace")
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise AddressError(f"{path}: not a file of PEM certificates")
    return text


def _credentials(args: argparse.Namespace, address: RepositoryAddress) -> Credentials | None:
    username: str | None = args.username
    if bool(args.password_stdin) != (username is not None):
        raise AddressError("give --username and --password-stdin together")
    if username is not None:
        return Credentials(username, sys.stdin.read(MAX_PASSWORD).removesuffix("\n"))
    path: Path | None = args.docker_config
    if path is None:
        path = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
        if not path.is_file():
            return None
    try:
        return read_docker_config(_read(path, MAX_DOCKER_CONFIG), address.registry, address.path)
    except FormatError as error:
        raise AddressError(f"{path}: {error}") from error


def _read(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise AddressError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise AddressError(f"{path}: more than {limit} bytes")
    return data


def _printable(text: str) -> str:
    """Return foreign text for a terminal: one line, no control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
