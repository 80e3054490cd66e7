"""The login of a registry from Docker's configuration, in the form that ``docker login`` writes and Secrets of Kubernetes
contain.

There are two forms: ``config.json`` (``.dockerconfigjson``), with one entry for each registry in ``auths``, and the older
``.dockercfg``, which is only the map of such entries. Keys have the form in which users typed them: ``registry.example``,
``https://registry.example/v1/``, ``registry.example:5000/team``, ``*.example.com``. The most specific matching key wins: a longer
path first, then a host without a wildcard.

Helpers that store passwords elsewhere (``credsStore``, ``credHelpers``) are programs. `read_helper` returns the helper for a
registry; :mod:`~wharfinger.packages.registry.docker_logins` runs it, but never a helper that a Secret names. Messages contain
nothing from the file except an entry's key. Sources: docker/cli's ``cli/config/configfile``; kubelet's credential provider for
paths and wildcards.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find, find_object, find_str
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.credentials import Credentials

MAX_DOCKER_CONFIG: Final = 1024 * 1024
"""The largest size of a configuration, in bytes; a Secret has the same limit."""
MAX_KEYS: Final = 1_000
"""The maximum number of entries in ``auths``, and also in ``credHelpers``. There is a limit, because other tasks wait while a
registry is searched in them.
"""

_HUB: Final = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
"""The names of Docker Hub; its key in the file is ``https://index.docker.io/v1/`` for historical reasons."""
_KEY: Final = re.compile(
    r"(?:https?://)?(?P<host>\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9.*?-]{1,253})(?::(?P<port>[0-9]{1,5}))?(?P<path>/.*)?\Z",
    re.ASCII,
)
_TOKEN_USER: Final = "<token>"  # noqa: S105 - the user name under which Docker keeps an identity token
_HUB_SERVER: Final = "https://index.docker.io/v1/"
_HELPER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}\Z")
_HTTPS: Final = 443


class DockerConfigError(FormatError):
    """The configuration, or its entry for this registry, cannot be read."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The registry and the path that a key of a Docker configuration file names."""

    host: str
    port: str
    path: str

    def fits(self, registry: RegistryAddress, repository: str) -> bool:
        """Return whether the repository of the registry is below this place."""
        port = "" if registry.port in {None, _HTTPS} else str(registry.port)
        if port != self.port:
            return False
        if self.path and not f"{repository}/".startswith(f"{self.path}/"):
            return False
        if registry.host in _HUB:
            return self.host in _HUB
        if registry.host == self.host:
            return True
        ours, theirs = registry.host.split("."), self.host.split(".")
        return len(ours) == len(theirs) and all(map(fnmatchcase, ours, theirs))

    def rank(self) -> tuple[int, bool, bool]:
        """Return a sort key: the fewer repositories a place describes, the higher is its key."""
        return len(self.path), "*" not in self.host and "?" not in self.host, bool(self.port)


def read_docker_config(data: bytes, registry: RegistryAddress, repository: str = "") -> Credentials | None:
    """Return the login for a repository of a registry, or None if the configuration has none.

    Without a ``repository`` only entries for the whole registry count. Raises DockerConfigError. A broken entry for another
    registry is ignored.
    """
    try:
        document = as_object(decode_json(data, max_bytes=MAX_DOCKER_CONFIG, what="document"), "document")
        entries = find_object(document, "auths") if "auths" in document else _old_entries(document)
        if len(entries) > MAX_KEYS:
            raise DockerConfigError(f"{len(entries)} entries; at most {MAX_KEYS} are read")
        found = sorted(_fitting(entries, registry, repository), key=lambda pair: pair[1].rank(), reverse=True)
        for key, _ in found:
            credentials = _credentials(as_object(entries[key], f"auths.{key[:200]}"), key[:200])
            if credentials is not None:
                return credentials
    except DockerConfigError as error:
        raise DockerConfigError(f"docker config: {error}") from error
    except FormatError as error:
        raise DockerConfigError(f"docker config: {error}") from error
    return None


@dataclass(frozen=True, slots=True)
class Helper:
    """A credential helper for a registry. ``server`` is the name by which the helper knows the registry.

    ``is_named`` is True if the file names the registry; in that case, the login fails if the helper fails. The helper in
    ``credsStore`` is run even for a registry that the file does not name, as Docker does it. Then its failure is ignored,
    because most users need no login for such a registry.
    """

    name: str
    server: str
    is_named: bool


def read_helper(data: bytes, registry: RegistryAddress) -> Helper | None:
    """Return the credential helper for a registry, or None. Raises DockerConfigError."""
    try:
        document = as_object(decode_json(data, max_bytes=MAX_DOCKER_CONFIG, what="document"), "document")
        helpers, entries = find_object(document, "credHelpers"), find_object(document, "auths")
        if len(helpers) > MAX_KEYS or len(entries) > MAX_KEYS:
            raise DockerConfigError(f"more than {MAX_KEYS} entries")
        found = sorted(_fitting(helpers, registry, ""), key=lambda pair: pair[1].rank(), reverse=True)
        field = f"credHelpers.{found[0][0][:200]}" if found else "credsStore"
        name = find_str(helpers, found[0][0]) if found else find_str(document, "credsStore")
    except FormatError as error:
        raise DockerConfigError(f"docker config: {error}") from error
    if not name:
        return None
    if not _HELPER.match(name):
        raise DockerConfigError(f"docker config: {field}: not the name of a credential helper, such as pass")
    return Helper(name, server_name(registry), is_named=bool(found) or bool(_fitting(entries, registry, "")))


def server_name(registry: RegistryAddress) -> str:
    """Return the name by which Docker's credential helpers identify the login of a registry."""
    return _HUB_SERVER if registry.host in _HUB else str(registry)


def read_helper_answer(data: bytes) -> Credentials | None:
    """Return the login that a credential helper has printed; None if the login is empty.

    Raises DockerConfigError, which does not quote the answer.
    """
    try:
        answer = as_object(decode_json(data, max_bytes=MAX_DOCKER_CONFIG, what="answer"), "answer")
        username, secret = find_str(answer, "Username"), find_str(answer, "Secret")
    except FormatError:
        raise DockerConfigError("its answer does not have the form of a credential helper's output") from None
    if username == _TOKEN_USER:
        return Credentials(username, "", secret) if secret else None
    return Credentials(username, secret) if username or secret else None


def _old_entries(document: JsonObject) -> JsonObject:
    """Return the entries of a ``.dockercfg``; {} for a ``config.json`` without logins."""
    return {key: value for key, value in document.items() if isinstance(value, dict) and _is_entry(value)}


def _is_entry(value: JsonValue) -> bool:
    return any(find(value, key) is not None for key in ("auth", "username", "password", "identitytoken"))


def _fitting(entries: JsonObject, registry: RegistryAddress, repository: str) -> list[tuple[str, _Place]]:
    places = ((key, _place(key)) for key in entries)
    return [(key, place) for key, place in places if place is not None and place.fits(registry, repository)]


def _place(key: str) -> _Place | None:
    match = _KEY.match(key) if len(key) <= 1024 else None
    if match is None:
        return None
    port = "" if match["port"] in {None, str(_HTTPS)} else match["port"]
    path = (match["path"] or "").strip("/")
    # ``v1`` and ``v2`` are versions of the registry API, which old clients wrote into the key. No repository has such a name.
    return _Place(match["host"].lower(), port, "" if path in {"v1", "v2"} else path)


def _credentials(entry: JsonObject, key: str) -> Credentials | None:
    username, password = find_str(entry, "username"), find_str(entry, "password")
    if auth := find_str(entry, "auth"):
        username, password = _decoded(auth, key)
    token = find_str(entry, "identitytoken")
    if username == _TOKEN_USER and not token:
        username, password, token = "", "", password
    if token:
        return Credentials(username, "", token)
    return Credentials(username, password) if username or password else None


def _decoded(auth: str, key: str) -> tuple[str, str]:
    """Return the user name and password of an ``auth``: base64 of ``name:password``, padded or not."""
    text = auth.strip()
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise DockerConfigError(
            f"auths.{key}.auth: not base64 of name:password; log in again (`docker login`)"
        ) from error
    name, colon, password = plain.partition(":")
    if not colon:
        raise DockerConfigError(f"auths.{key}.auth: not base64 of name:password; log in again (`docker login`)")
    return name, password.rstrip("\0")
