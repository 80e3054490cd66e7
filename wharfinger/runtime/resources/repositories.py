"""The PackageRepository as the runtime reads it: the source of packages, and its credentials.

A repository is one of three: a registry (``spec.registry``), a folder of OCI image layouts (``spec.layout``) or a folder of
package folders (``spec.folder``). The last two are paths on the daemon's own machine. A user who may create a PackageRepository
could make the daemon read any file there, so the paths must lie below a folder that the daemon was started with
(``--local-packages``).

Credentials come from a Secret: ``kubernetes.io/dockerconfigjson``, ``kubernetes.io/dockercfg``, or the keys ``username`` and
``password`` (``kubernetes.io/basic-auth``). They are never part of the resource, nor of any message.
"""

import base64
import binascii
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.errors import PackageError
from wharfinger.packages.registry.address import RepositoryAddress, parse_repository
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_config import read_docker_config
from wharfinger.packages.registry.source import FolderSource, LayoutSource, RegistrySource, Source
from wharfinger.runtime.resources.resources import SECRET, SpecError

_DOCKER_KEYS: Final = (".dockerconfigjson", ".dockercfg")
MAX_CA: Final = 1024 * 1024
MAX_REALMS: Final = 16
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class Repository:
    """The content of a PackageRepository; ``credentials`` is the Secret with the login, None for a registry without one."""

    source: Source
    credentials: ObjectKey | None
    realms: tuple[str, ...] = ()
    """Hosts outside the registry's domain that may receive the login."""


def read_repository(obj: JsonObject, local_roots: Sequence[Path] = ()) -> Repository:
    """Read the source of a PackageRepository; folders must lie below one of ``local_roots``. Raises SpecError."""
    try:
        kinds = [kind for kind in ("registry", "layout", "folder") if find_object(obj, "spec", kind)]
        if len(kinds) != 1:
            raise SpecError("spec: exactly one of registry, layout and folder is needed")
        if kinds[0] != "registry":
            path = _local_path(find_str(obj, "spec", kinds[0], "path"), f"spec.{kinds[0]}.path", local_roots)
            return Repository(LayoutSource(path) if kinds[0] == "layout" else FolderSource(path), None)
        return _registry(obj)
    except (FormatError, PackageError) as error:
        raise SpecError(f"spec: {error}; correct the PackageRepository") from error


def with_credentials(repository: Repository, secret: JsonObject | None) -> Source:
    """Return the source with the login from its Secret. Raises SpecError if the Secret is missing or unusable."""
    if repository.credentials is None or not isinstance(repository.source, RegistrySource):
        return repository.source
    where = f"Secret {repository.credentials.namespace}/{repository.credentials.name}"
    if secret is None:
        raise SpecError(f"spec.registry.credentialsSecret: {where} does not exist; create it, or correct the name")
    source = repository.source
    try:
        credentials = _credentials(secret, source.address)
    except (FormatError, PackageError) as error:
        raise SpecError(f"spec.registry.credentialsSecret: {where}: {error}") from error
    if credentials is None:
        raise SpecError(
            f"spec.registry.credentialsSecret: {where} has no login for {source.address.registry}; it needs a "
            ".dockerconfigjson that names that host, or the keys username and password"
        )
    return RegistrySource(source.address, replace(credentials, realms=repository.realms), source.ca)


def secret_data(secret: JsonObject) -> dict[str, bytes]:
    """Return ``data`` of a Secret, decoded. Raises FormatError, which names the key."""
    data: dict[str, bytes] = {}
    for key in find_object(secret, "data"):
        try:
            data[key] = base64.b64decode(find_str(secret, "data", key), validate=True)
        except binascii.Error as error:
            raise FormatError(f"data.{key}: not base64") from error
    return data


def _registry(obj: JsonObject) -> Repository:
    text = find_str(obj, "spec", "registry", "repo")
    scheme = find_str(obj, "spec", "registry", "scheme", default="HTTPS").upper()
    if not text:
        raise SpecError("spec.registry.repo: required, such as registry.example/packages")
    if scheme not in {"HTTP", "HTTPS"}:
        raise SpecError(f"spec.registry.scheme: {scheme!r} is neither HTTP nor HTTPS")
    parsed = parse_repository(text.rstrip("/"))
    address = RepositoryAddress(parsed.registry, parsed.path, "http" if scheme == "HTTP" else "https")
    ca = find_str(obj, "spec", "registry", "ca")
    if ca and (len(ca) > MAX_CA or "-----BEGIN CERTIFICATE-----" not in ca):
        raise SpecError("spec.registry.ca: not a certificate in PEM form")
    return Repository(RegistrySource(address, None, ca), _credentials_secret(obj), _realms(obj))


def _realms(obj: JsonObject) -> tuple[str, ...]:
    named = find_list(obj, "spec", "registry", "tokenRealms")
    if len(named) > MAX_REALMS:
        raise SpecError(f"spec.registry.tokenRealms: {len(named)} hosts are more than {MAX_REALMS}")
    realms: list[str] = []
    for host in named:
        if not isinstance(host, str) or not _HOST.match(host):
            raise SpecError("spec.registry.tokenRealms: each is a host, such as auth.example, without scheme and port")
        realms.append(host.lower())
    return tuple(realms)


def _credentials_secret(obj: JsonObject) -> ObjectKey | None:
    named = find_object(obj, "spec", "registry", "credentialsSecret")
    if not named:
        return None
    name, namespace = find_str(named, "name"), find_str(named, "namespace")
    if not (name and namespace):
        raise SpecError("spec.registry.credentialsSecret: name and namespace are both needed")
    return ObjectKey(SECRET, namespace, name)


def _credentials(secret: JsonObject, address: RepositoryAddress) -> Credentials | None:
    data = secret_data(secret)
    for key in _DOCKER_KEYS:
        if key in data:
            return read_docker_config(data[key], address.registry, address.path)
    if "username" in data and "password" in data:
        try:
            return Credentials(data["username"].decode(), data["password"].decode())
        except UnicodeDecodeError as error:
            raise FormatError("username and password must be text") from error
    return None


def _local_path(text: str, where: str, roots: Sequence[Path]) -> Path:
    path = Path(text)
    if not text or not path.is_absolute():
        raise SpecError(f"{where}: required, an absolute path on the daemon's machine")
    if "\0" in text:
        raise SpecError(f"{where}: expected a path without NUL characters")
    path = Path(os.path.realpath(path))
    if not any(path.is_relative_to(os.path.realpath(root)) for root in roots):
        raise SpecError(
            f"{where}: {text} is not below a folder that the daemon may read packages from; "
            "start the daemon with --local-packages DIR, or name a folder below an allowed one"
        )
    return path
