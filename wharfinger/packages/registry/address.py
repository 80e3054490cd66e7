"""Addresses of packages, such as ``registry.example:5000/charts/podinfo:1.2.3``: users write them as text, and here they are
split into the parts that requests need.

The grammar is that of OCI references (distribution's ``reference`` package, OCI distribution spec 1.1 §"Pulling manifests"): a
registry (host, optional port), a repository of lower-case components, and optionally a tag, a ``@sha256:`` digest, or both
(then the digest decides). There is no default registry, so that a mistyped address cannot send a request to a foreign host.

The scheme is https. Plain http is used for loopback hosts (a registry on the same machine), for addresses with ``http://``,
and if the caller passes ``insecure``.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import AddressError, DigestError

Scheme: TypeAlias = Literal["http", "https"]

MAX_LENGTH: Final = 1024
MAX_NAME: Final = 255
"""The limit on the total length of a registry's name, a slash and a repository's name, from the grammar of image references."""

_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_REGISTRY: Final = re.compile(rf"(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{{1,5}}))?\Z")
_REPOSITORY: Final = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*\Z",
)
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_SCHEMES: Final[dict[str, Scheme | None]] = {"oci://": None, "http://": "http", "https://": "https"}


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """The host and port of a registry. The host is in lower case, and an IPv6 address is in brackets. A port of None is the
    default port of the scheme.
    """

    host: str
    port: int | None = None

    @property
    def is_loopback(self) -> bool:
        """True if the host is this machine, by name or by address."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        """Return ``host`` or ``host:port``."""
        return self.host if self.port is None else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """A repository in a registry, such as ``registry.example/charts/podinfo``, and the scheme of requests to it."""

    registry: RegistryAddress
    path: str
    scheme: Scheme = "https"

    def child(self, name: str) -> "RepositoryAddress":
        """Return the repository ``name`` below this one. Raises AddressError."""
        return RepositoryAddress(self.registry, _repository(f"{self.path}/{name}", self.registry, name), self.scheme)

    def __str__(self) -> str:
        """Return the address without the scheme, as users write it."""
        return f"{self.registry}/{self.path}"


@dataclass(frozen=True, slots=True)
class PackageReference:
    """A package in a repository, by tag (may be empty) or by digest (which has priority)."""

    repository: RepositoryAddress
    tag: str = ""
    digest: Digest | None = None

    def __str__(self) -> str:
        """Return ``registry.example/charts/podinfo:1.2.3@sha256:…``, without the tag or the digest if it is missing."""
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.repository}{tag}" + (f"@{self.digest}" if self.digest else "")


def parse_registry(text: str, *, insecure: bool = False) -> tuple[RegistryAddress, Scheme]:
    """Read ``[scheme://]host[:port]``. Raises AddressError."""
    scheme, rest = _split_scheme(text)
    registry = _registry(rest, text)
    return registry, scheme or choose_scheme(registry, insecure=insecure)


def parse_repository(text: str, *, insecure: bool = False) -> RepositoryAddress:
    """Read ``[scheme://]host[:port]/path``, without tag and digest. Raises AddressError."""
    reference = parse_reference(text, insecure=insecure)
    if reference.tag or reference.digest:
        raise AddressError(f"{_shown(text)}: this names one package; give the repository, without tag and digest")
    return reference.repository


def parse_reference(text: str, *, insecure: bool = False) -> PackageReference:
    """Read ``[scheme://]host[:port]/path[:tag][@sha256:…]``; schemes are oci, http and https. Raises AddressError.

    ``insecure`` allows plain http for a registry that is not on this machine.
    """
    scheme, rest = _split_scheme(text)
    rest, at, digest_text = rest.partition("@")
    digest: Digest | None = None
    if at:
        try:
            digest = Digest(digest_text)
        except DigestError as error:
            raise AddressError(f"{_shown(text)}: {error}") from error
    host, slash, path = rest.partition("/")
    if not slash:
        raise AddressError(
            f"{_shown(text)}: expected host/path[:tag], such as registry.example/charts/web:1.0.0, found no repository"
        )
    registry = _registry(host, text)
    path, colon, tag = path.partition(":")
    if colon and not _TAG.match(tag):
        raise AddressError(
            f"{_shown(text)}: {_shown(tag)} is not a valid tag: up to 128 letters, digits and '_.-', but no '.' or '-' first"
            + ("; write the '+' of a version as '_'" if "+" in tag else "")
        )
    repository = _repository(path, registry, text)
    return PackageReference(
        RepositoryAddress(registry, repository, scheme or choose_scheme(registry, insecure=insecure)), tag, digest
    )


def choose_scheme(registry: RegistryAddress, *, insecure: bool) -> Scheme:
    """Return http for a registry on this machine, or if ``insecure`` allows it; otherwise https."""
    return "http" if insecure or registry.is_loopback else "https"


def tag_of_version(version: str) -> str:
    """Return the tag under which Helm stores a chart version: ``+`` becomes ``_``, because a tag cannot contain ``+``.

    Raises AddressError.
    """
    tag = version.replace("+", "_")
    if not _TAG.match(tag):
        raise AddressError(
            f"version {_shown(version)} cannot be a tag; choose a shorter version of letters, digits, '.', '-', '+'"
        )
    return tag


def version_of_tag(tag: str) -> str:
    """Return the chart version of a tag. This reverses `tag_of_version`, because a version contains no underscore."""
    return tag.replace("_", "+")


def is_tag(text: str) -> bool:
    """Return whether a text is a valid tag."""
    return _TAG.match(text) is not None


def check_tag(text: str) -> None:
    """Raise AddressError unless a text is a valid tag."""
    if not is_tag(text):
        raise AddressError(f"{_shown(text)} is not a valid tag")


def is_repository(text: str) -> bool:
    """Return whether the grammar allows this repository path."""
    return len(text) <= MAX_NAME and _REPOSITORY.match(text) is not None


def check_repository(text: str) -> None:
    """Raise AddressError if the grammar does not allow this repository path."""
    if not is_repository(text):
        raise AddressError(f"{_shown(text)} is not a valid repository")


def checked_package(name: str) -> str:
    """Return a package name, which is the path of a repository. Raises AddressError if the grammar does not allow it."""
    if not is_repository(name):
        raise AddressError(
            f"{name[:200]!r} is not a valid package name: use lower-case letters and digits, with '-', '.', '_' or "
            "'/' only between them"
        )
    return name


def _split_scheme(text: str) -> tuple[Scheme | None, str]:
    if len(text) > MAX_LENGTH:
        raise AddressError(f"{_shown(text)}: {len(text)} characters; an address has at most {MAX_LENGTH}")
    prefix = next((prefix for prefix in _SCHEMES if text.startswith(prefix)), "")
    rest = text.removeprefix(prefix)
    _, at, host = rest.rpartition("://")[2].partition("/")[0].rpartition("@")
    if at and not host.startswith("sha256"):
        # The text is not quoted, because others can read messages in logs and in the status of a resource.
        raise AddressError("the address contains a user name or password; give them separately")
    if "://" in rest:
        raise AddressError(f"{_shown(text)}: unknown scheme; use oci://, https://, http:// or none")
    return _SCHEMES.get(prefix), rest


def _registry(text: str, whole: str) -> RegistryAddress:
    match = _REGISTRY.match(text)
    if match is None or len(text) > MAX_NAME:
        raise AddressError(
            f"{_shown(whole)}: {_shown(text)} is not a valid host[:port]; write HOST[:PORT]/PATH, or oci-layout:FOLDER for a "
            "folder"
        )
    host, port = match["host"].lower(), match["port"]
    if host.startswith("["):
        try:
            host = f"[{ipaddress.IPv6Address(host[1:-1])}]"
        except ValueError as error:
            raise AddressError(f"{_shown(whole)}: {_shown(host)} is not a valid IPv6 address") from error
    if port is not None and not 0 < int(port) < 65536:
        raise AddressError(f"{_shown(whole)}: port {port} is not between 1 and 65535")
    return RegistryAddress(host, int(port) if port is not None else None)


def _repository(path: str, registry: RegistryAddress, whole: str) -> str:
    if len(path) + len(str(registry)) + 1 > MAX_NAME:
        raise AddressError(f"{_shown(whole)}: registry and repository have more than {MAX_NAME} characters")
    if not _REPOSITORY.match(path):
        raise AddressError(
            f"{_shown(whole)}: {_shown(path)} is not a valid repository: lower-case letters and digits, "
            "separated by '/', '.', '_', '__' or '-'"
        )
    return path


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 200 else repr(text[:200]) + "…"
