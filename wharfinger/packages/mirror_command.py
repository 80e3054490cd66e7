"""``wharfinger repository mirror``: copy packages, with their images, to another registry or a folder of OCI image layouts."""

import argparse
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import cast

import trio

from wharfinger.formats.encodable import encodable
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object
from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.errors import AddressError, PackageError
from wharfinger.packages.files.disk_files import disk_errors
from wharfinger.packages.mirroring.mirror import Mirror, OpenImage, PackageRoot, RequestedPackage, names_of
from wharfinger.packages.mirroring.rendered_images import open_rendered_images
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.registry.address import RepositoryAddress, is_repository, is_tag
from wharfinger.packages.registry.docker_logins import DockerLogins, default_file
from wharfinger.packages.registry.oci_layout import LAYOUT_FILE, OciLayout
from wharfinger.packages.registry.oci_registry import OciRegistry
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.rendering.helm_command import KUBE_VERSION
from wharfinger.packages.sources.source import Network, RegistrySource, open_repository
from wharfinger.packages.targets import LAYOUT, add_network_arguments, open_target, read_authorities, read_repository


def add_repository(parser: argparse.ArgumentParser) -> None:
    """Add ``repository mirror SRC DST``."""
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    mirror = actions.add_parser(
        "mirror",
        help="copy packages, with the images that they reference, to another registry or to a folder",
        description="Copy packages from SRC to DST with their digests, signatures and images. A package lists its images "
        "in an annotation of Chart.yaml (artifacthub.io/images or images), or in images_digests.json. If a package lists "
        "no images, it is rendered, and the images in its manifests are copied. After an interruption, run the command "
        "again to continue. A daemon without a network can install the packages from a folder of OCI image layouts "
        "(spec.layout).",
    )
    place = f"host[:port]/path, below which each package is a repository; or a folder of OCI image layouts, as {LAYOUT}FOLDER"
    mirror.add_argument("source", metavar="SRC", help=place)
    mirror.add_argument("target", metavar="DST", help=place)
    mirror.add_argument(
        "--package",
        action="append",
        default=[],
        metavar="NAME[:TAG]",
        help="copy this package, in all versions or with one tag (may be repeated; default: all packages that SRC lists)",
    )
    mirror.add_argument(
        "--settings",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="render the package NAME with the settings in this YAML or JSON file, to find its images (may be repeated; "
        "default: the package's own defaults)",
    )
    mirror.add_argument(
        "--kubernetes-version",
        default="",
        metavar="V",
        help=f"the version of Kubernetes for which packages are rendered (default: {KUBE_VERSION})",
    )
    mirror.add_argument("--no-images", action="store_true", help="copy only packages and signatures")
    mirror.add_argument(
        "--dry-run",
        action="store_true",
        help="list everything that would be copied, with the total size, but copy nothing",
    )
    add_network_arguments(mirror)
    mirror.set_defaults(handler=_mirror, username=None, password_stdin=False)


def _mirror(args: argparse.Namespace) -> int:
    try:
        mirror = trio.run(_mirror_async, args)
    except PackageError as error:
        hint = "; run the same command again to continue" if error.transient else ""
        print(f"error: {printable(str(error))}{hint}", file=sys.stderr)  # noqa: T201 - a command
        return 1
    said = _shortcomings(mirror)
    for line in said:
        print(f"error: {printable(line)}", file=sys.stderr)  # noqa: T201 - a command
    return 1 if said else 0


def _shortcomings(mirror: Mirror) -> list[str]:
    """Return a line for each package whose images are not known, and for each image that was not copied, with the remedies."""
    unknown, failed = sorted(mirror.unknown.items()), sorted(mirror.failed.items())
    said = [f"{package} was copied without its images, which are not known: {why}" for package, why in unknown]
    if unknown:
        hint = "give settings with --settings NAME=FILE, list the images in Chart.yaml, or use --no-images"
        said.append(f"{counted(len(unknown), 'package')} without images; {hint}")
    said += [f"the image {image} was not copied: {error}" for image, error in failed]
    if failed:
        retry = "run the same command again to continue; " if any(error.transient for _, error in failed) else ""
        said.append(
            f"{counted(len(failed), 'image')} not copied; {retry}correct the images in Chart.yaml, or use --no-images"
        )
    return said


async def _mirror_async(args: argparse.Namespace) -> Mirror:
    """Copy the requested packages; return the mirror, which has recorded everything that could not be copied."""
    wanted = [_wanted(text) for text in cast("list[str]", args.package)]
    settings = _all_settings(cast("list[str]", args.settings))
    async with (
        _opened(args, str(args.source)) as (source, path),
        _opened(args, str(args.target)) as (target, below),
        open_rendered_images(settings, str(args.kubernetes_version)) as rendered,
    ):
        mirror = Mirror(
            PackageRoot(source, path),
            target,
            below,
            _images(args),
            rendered.find,
            images=not args.no_images,
            dry_run=bool(args.dry_run),
        )
        if not wanted:
            wanted = [RequestedPackage(name) for name in await _names(str(args.source), source, path)]
        for name in settings:
            if name not in {each.name for each in wanted}:
                raise AddressError(f"--settings {name}=…: no package {name} is to be copied; correct the name")
        async with aclosing(mirror.run(wanted)) as lines:
            async for line in lines:
                print(encodable(line, sys.stdout.encoding or "utf-8"))  # noqa: T201 - a command
    sums = mirror.sums
    verb = "would copy" if args.dry_run else "copied"
    line = f"{verb} {counted(sums.artifacts, 'artifact')}, {counted(sums.bytes, 'byte')}; {sums.present} were there already"
    print(line)  # noqa: T201 - a command
    return mirror


def _all_settings(texts: list[str]) -> dict[str, JsonObject]:
    """Read the settings of packages, by name. Raises AddressError and StoreError."""
    settings: dict[str, JsonObject] = {}
    for text in texts:
        name, found = _settings(text)
        if name in settings:
            raise AddressError(f"--settings {name}=…: given twice; write all settings of {name} into one file")
        settings[name] = found
    return settings


def _settings(text: str) -> tuple[str, JsonObject]:
    """Return the name in the argument ``NAME=FILE``, and the settings in the file. Raises AddressError and StoreError."""
    name, equals, file = text.partition("=")
    if not is_repository(name) or not equals or not file:
        raise AddressError(f"--settings {text[:200]!r}: expected NAME=FILE, such as web=web-settings.yaml")
    with disk_errors(f"reading {file}"):
        data = Path(file).read_bytes()
    try:
        return name, as_object(read_yaml(data, what=file), file)
    except FormatError as error:
        raise AddressError(f"--settings: {error}") from error


def _wanted(text: str) -> RequestedPackage:
    name, colon, tag = text.partition(":")
    if not is_repository(name) or (colon and not is_tag(tag)):
        raise AddressError(f"--package {text[:200]!r}: expected NAME or NAME:TAG, such as web:1.2.0")
    return RequestedPackage(name, tag)


@asynccontextmanager
async def _opened(args: argparse.Namespace, text: str) -> AsyncIterator[tuple[OciRegistry | OciLayout, str]]:
    """Open the source or the target, and yield it, with the path below which its packages lie."""
    if text.startswith(LAYOUT):
        yield OciLayout(Path(text.removeprefix(LAYOUT))), ""
        return
    target = read_repository(text, plain_http=bool(args.plain_http))
    async with open_target(args, target) as registry:
        assert isinstance(registry, OciRegistry)  # noqa: S101 - a target with an address is an OciRegistry
        yield registry, target.repository


async def _names(text: str, source: Registry, path: str) -> list[str]:
    if not text.startswith(LAYOUT):
        return await names_of(source, path)
    root = Path(text.removeprefix(LAYOUT))
    return await trio.to_thread.run_sync(_layouts, root)


def _layouts(root: Path) -> list[str]:
    """Return the names of the packages in a folder of OCI layouts. The copied images, below ``images/``, are left out.
    Blocking.
    """
    found = (path.parent.relative_to(root).as_posix() for path in root.rglob(LAYOUT_FILE))
    return sorted(name for name in found if name != "." and not name.startswith("images/"))


def _images(args: argparse.Namespace) -> OpenImage:
    logins = DockerLogins(cast("Path | None", args.docker_config) or default_file())
    network = Network(read_proxies(os.environ), logins=logins)
    ca = read_authorities(args)

    def open_image(repository: RepositoryAddress) -> AbstractAsyncContextManager[Registry]:
        return open_repository(RegistrySource(repository, ca=ca), repository, network)

    return open_image
