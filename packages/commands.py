"""``wharfinger package push`` and ``wharfinger package inspect``: the author's side of a registry."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, as_object, decode_json
from wharfinger.packages.address import PackageReference, parse_reference
from wharfinger.packages.chart import MAX_CHART_FILE
from wharfinger.packages.credentials import Credentials
from wharfinger.packages.errors import AddressError, ArtifactError, PackageError
from wharfinger.packages.manifest import HELM_CONFIG
from wharfinger.packages.oci_registry import OciRegistry, open_registry
from wharfinger.packages.pusher import load_package, push_package
from wharfinger.packages.registry import Manifest, Registry

MAX_PASSWORD: Final = 64 * 1024

_SHOWN: Final = {
    "name": "name",
    "version": "version",
    "appVersion": "app version",
    "kubeVersion": "kubernetes",
    "description": "description",
}


def add_package(parser: argparse.ArgumentParser) -> None:
    """``package push PATH REFERENCE`` and ``package inspect REFERENCE``."""
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    push = actions.add_parser(
        "push",
        help="push a chart folder or a packed chart (.tgz)",
        description="Push a chart folder or a packed chart (.tgz) to a registry, as `helm push` does.",
    )
    push.add_argument("path", type=Path, metavar="PATH", help="the chart's folder, or a .tgz")
    push.add_argument(
        "reference",
        metavar="REFERENCE",
        help="host[:port]/repository[:tag]; without a tag, that of the chart's version",
    )
    _add_registry_arguments(push)
    push.set_defaults(handler=_push)
    inspect = actions.add_parser(
        "inspect",
        help="show what a registry has under a reference",
        description="Show what a registry has under a reference.",
    )
    inspect.add_argument("reference", metavar="REFERENCE", help="host[:port]/repository:tag, or @sha256:…")
    _add_registry_arguments(inspect)
    inspect.set_defaults(handler=_inspect)


def _add_registry_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plain-http",
        action="store_true",
        help="speak http instead of https (loopback registries are spoken to so anyway)",
    )
    parser.add_argument("--ca-file", type=Path, metavar="FILE", help="more certificate authorities to trust, PEM")
    parser.add_argument("--username", metavar="NAME", help="who asks")
    parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")


def _push(args: argparse.Namespace) -> int:
    return _run(partial(_push_async, args))


def _inspect(args: argparse.Namespace) -> int:
    return _run(partial(_inspect_async, args))


def _run(work: Callable[[], Awaitable[list[str]]]) -> int:
    try:
        lines = trio.run(work)
    except PackageError as error:
        hint = "; this may pass by itself, try again" if error.transient else ""
        print(f"error: {_printable(str(error))}{hint}", file=sys.stderr)
        return 1
    for line in lines:
        print(line)
    return 0


async def _push_async(args: argparse.Namespace) -> list[str]:
    reference = _reference(args)
    if reference.digest is not None:
        raise AddressError(f"{reference}: a digest cannot be pushed to; give a tag, or none for the chart's version")
    path: Path = args.path
    package = await load_package(path)
    tag = reference.tag or package.tag
    repository = reference.repository
    async with _registry(args, reference) as registry:
        descriptor = await push_package(package, registry, repository.path, tag)
    return [f"pushed {PackageReference(repository, tag)} {descriptor.digest}"]


async def _inspect_async(args: argparse.Namespace) -> list[str]:
    reference = _reference(args)
    repository = reference.repository.path
    async with _registry(args, reference) as registry:
        digest = reference.digest
        if digest is None:
            if not reference.tag:
                raise AddressError(f"{reference}: give a tag or a digest, such as {reference}:1.0.0")
            digest = (await registry.resolve(repository, reference.tag)).digest
        manifest = await registry.manifest(repository, digest)
        metadata = await _metadata(registry, repository, manifest)
    return _described(reference, manifest, metadata)


async def _metadata(registry: Registry, repository: str, manifest: Manifest) -> JsonObject:
    """What a Helm chart's config says; nothing for other artifacts. Raises PackageError."""
    if manifest.config.media_type != HELM_CONFIG:
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


def _described(reference: PackageReference, manifest: Manifest, metadata: JsonObject) -> list[str]:
    rows = [
        ("reference", str(reference)),
        ("digest", str(manifest.descriptor.digest)),
        ("type", manifest.artifact_type),
    ]
    for key, label in _SHOWN.items():
        value = metadata.get(key)
        if isinstance(value, str | int | float):
            rows.append((label, str(value)))
    rows += [("layer", f"{layer.digest}  {layer.size} bytes  {layer.media_type}") for layer in manifest.layers]
    return [f"{label:<12} {_printable(text)}" for label, text in rows]


def _reference(args: argparse.Namespace) -> PackageReference:
    text, insecure = str(args.reference), bool(args.plain_http)
    return parse_reference(text, insecure=insecure)


def _registry(args: argparse.Namespace, reference: PackageReference) -> AbstractAsyncContextManager[OciRegistry]:
    ca_file: Path | None = args.ca_file
    repository = reference.repository
    return open_registry(repository.registry, scheme=repository.scheme, credentials=_credentials(args), ca_file=ca_file)


def _credentials(args: argparse.Namespace) -> Credentials | None:
    username: str | None = args.username
    if bool(args.password_stdin) != (username is not None):
        raise AddressError("give --username and --password-stdin together")
    if username is None:
        return None
    password = sys.stdin.read(MAX_PASSWORD).removesuffix("\n")
    return Credentials(username, password)


def _printable(text: str) -> str:
    """Text of others for a terminal: one line, no control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
