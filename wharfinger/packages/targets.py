"""The targets of commands, which are repositories in a registry or in a folder of OCI layouts, and the options to reach them."""

import argparse
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from wharfinger.formats.option_values import path_option
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import AddressError
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.network.tls import MAX_CA
from wharfinger.packages.registry.address import (
    RepositoryAddress,
    is_repository,
    is_tag,
    parse_reference,
    parse_repository,
)
from wharfinger.packages.registry.connection import RegistryAccess
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_logins import DockerLogins, default_file
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.registry import WritableRegistry

LAYOUT: Final = "oci-layout:"
MAX_PASSWORD: Final = 64 * 1024


def add_registry_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options about the network, the login and the certificates of a registry."""
    add_network_arguments(parser)
    parser.add_argument("--username", metavar="NAME", help="user name for the registry")
    parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")


def add_network_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that can apply to several registries. The options --username and --password-stdin are for one registry,
    and are not among them.
    """
    parser.add_argument(
        "--plain-http",
        action="store_true",
        help="use http instead of https; a registry on a loopback address is used with http even without this option",
    )
    parser.add_argument(
        "--ca",
        "--ca-file",
        type=path_option,
        metavar="FILE",
        dest="ca",
        help="a PEM file of certificate authorities that are trusted in addition to those of the system",
    )
    parser.add_argument(
        "--token-realm",
        action="append",
        default=[],
        metavar="HOST",
        help="allow HOST, which is outside of the registry's domain, as the token realm of the registry, that is, as the "
        "server that issues its tokens. The login may then be sent to HOST (may be repeated)",
    )
    parser.add_argument(
        "--docker-config",
        type=path_option,
        metavar="FILE",
        help="a file with logins, in the format of `docker login` (default: $DOCKER_CONFIG/config.json or "
        "~/.docker/config.json, if it exists)",
    )


@dataclass(frozen=True, slots=True)
class Target:
    """The place that the argument REFERENCE of a command names, in a registry or in a folder of OCI layouts."""

    place: RepositoryAddress | Path
    repository: str
    tag: str
    digest: Digest | None

    def __str__(self) -> str:
        base = f"{LAYOUT}{self.place / self.repository}" if isinstance(self.place, Path) else str(self.place)
        return base + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def read_target(text: str, *, plain_http: bool) -> Target:
    """Read ``host/repository[:tag][@digest]`` or ``oci-layout:FOLDER/PACKAGE[:tag]``. Raises AddressError."""
    if not text.startswith(LAYOUT):
        reference = parse_reference(text, insecure=plain_http)
        return Target(reference.repository, reference.repository.path, reference.tag, reference.digest)
    rest, at, digest = text.removeprefix(LAYOUT).partition("@sha256:")
    path, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        path, tag = rest, ""
    folder, name = os.path.split(path)
    if not is_repository(name) or (tag and not is_tag(tag)):
        raise AddressError(
            f"{text[:300]!r}: expected {LAYOUT}FOLDER/PACKAGE[:TAG], such as {LAYOUT}./packages/web:1.0.0"
        )
    return Target(Path(folder), name, tag, Digest(f"sha256:{digest}") if at else None)


def read_repository(text: str, *, plain_http: bool) -> Target:
    """Read ``host/path``, the address below which a registry has the repositories of packages. Raises AddressError."""
    address = parse_repository(text.rstrip("/"), insecure=plain_http)
    return Target(address, address.path, "", None)


@asynccontextmanager
async def open_target(args: argparse.Namespace, target: Target) -> AsyncIterator[WritableRegistry]:
    """Open the registry of a target, with the options of the command line. Raises PackageError."""
    if isinstance(target.place, Path):
        yield OciLayout(target.place)
        return
    credentials = await _credentials(args, target.place)
    if credentials is not None:
        credentials = replace(credentials, realms=tuple(str(host).lower() for host in args.token_realm))
    access = RegistryAccess(proxies=read_proxies(os.environ))
    async with open_registry(
        target.place.registry,
        scheme=target.place.scheme,
        credentials=credentials,
        ca=read_authorities(args),
        access=access,
    ) as registry:
        yield registry


def read_authorities(args: argparse.Namespace) -> str:
    """Return the PEM text in the file of ``--ca``; empty without that option. Raises AddressError."""
    path: Path | None = args.ca
    if path is None:
        return ""
    text = read_file(path, MAX_CA).decode("ascii", "replace")
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise AddressError(f"{path}: not a file of PEM certificates")
    return text


async def _credentials(args: argparse.Namespace, address: RepositoryAddress) -> Credentials | None:
    username: str | None = args.username
    if bool(args.password_stdin) != (username is not None):
        raise AddressError("give --username and --password-stdin together")
    if username is not None:
        return Credentials(username, sys.stdin.read(MAX_PASSWORD).removesuffix("\n"))
    path: Path | None = args.docker_config
    if path is not None:
        _check_readable(path)
    logins = DockerLogins(default_file() if path is None else path, plain=True)
    return await logins.find(address.registry, address.path, scheme=address.scheme)


def _check_readable(path: Path) -> None:
    """Raise AddressError if a file that the user named is not readable. The file is not read here, because a pipe can be read
    only once.
    """
    try:
        path.stat()
    except OSError as error:
        raise AddressError(f"{path}: cannot be read: {error.strerror}") from error
    if not os.access(path, os.R_OK):
        raise AddressError(f"{path}: cannot be read: Permission denied")


def read_file(path: Path, limit: int) -> bytes:
    """Return the content of a file that the user named. Raises AddressError."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise AddressError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise AddressError(f"{path}: more than {limit} bytes")
    return data
