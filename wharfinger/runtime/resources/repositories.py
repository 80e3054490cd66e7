"""The parser of PackageRepositories. It reads the source of the packages, and the credentials for this source.

A repository is of one of six kinds: a registry (``spec.registry``), a Helm repository (``spec.helm``), a git repository
(``spec.git``), archives (``spec.archive``), a folder of OCI image layouts (``spec.layout``) or a folder of package folders
(``spec.folder``). The last two are paths on the daemon's own machine, and a git repository may be such a path. A user who may
create a PackageRepository could make the daemon read any file on that machine, so the paths must be below a folder that an
option of the daemon names (``--local-packages``).

Credentials come from a Secret or from a token file. The Secret has the type ``kubernetes.io/dockerconfigjson``,
``kubernetes.io/dockercfg``, ``kubernetes.io/ssh-auth`` (for git over ssh) or ``kubernetes.io/basic-auth`` (with the keys
``username`` and ``password``). The token file is on the daemon's machine, below a folder that another option names
(``--registry-tokens``). Credentials are never part of the resource, nor of any message. Another Secret (``kubernetes.io/tls``)
has the certificate of the CA to trust, and the client's certificate.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.errors import PackageError
from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.address import RegistryAddress, RepositoryAddress, is_repository, parse_repository
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_config import read_docker_config
from wharfinger.packages.sources.archives import ArchiveSource
from wharfinger.packages.sources.git_repository import GitSource, SshKey, read_git_url
from wharfinger.packages.sources.source import FolderSource, HelmSource, LayoutSource, RegistrySource, Source
from wharfinger.packages.sources.tag_pattern import read_pattern
from wharfinger.packages.sources.token_file import TokenFile
from wharfinger.packages.sources.web_files import read_url
from wharfinger.runtime.resources.archive_list import FIELD, CarriedArchives, read_archives, with_carried
from wharfinger.runtime.resources.repository_policy import has_policy, read_policy
from wharfinger.runtime.resources.resources import SECRET, SpecError
from wharfinger.runtime.resources.secret_data import secret_data

KINDS: Final = ("registry", "helm", "git", "archive", "layout", "folder")
"""The fields of ``spec`` that name a source."""
_TLS_KEYS: Final = ("ca.crt", "tls.crt", "tls.key")
_SSH_KEYS: Final = ("ssh-privatekey", "known_hosts")
_DOCKER_KEYS: Final = (".dockerconfigjson", ".dockercfg")
MAX_CA: Final = 1024 * 1024
MAX_REALMS: Final = 16
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class Repository:
    """The content of a PackageRepository; ``credentials`` is the Secret with the login; None if the PackageRepository
    names no such Secret.
    """

    source: Source
    credentials: ObjectKey | None
    realms: tuple[str, ...] = ()
    """The hosts outside of the registry's domain to which the login may be sent."""
    tls: ObjectKey | None = None
    """The Secret that contains the CA certificate to trust, or the client certificate with its key, or both."""
    field: str = "registry"
    """The field of ``spec`` that has the source."""

    carried: CarriedArchives = ()
    """The Secrets that carry archives."""

    @property
    def secrets(self) -> dict[str, ObjectKey]:
        """The Secrets that the repository names, by the path of the field that names them."""
        named = {"credentialsSecret": self.credentials, "tlsSecret": self.tls}
        found = {f"spec.{self.field}.{field}": key for field, key in named.items() if key is not None}
        for number, parts in self.carried:
            found |= {f"{FIELD}[{number}].secrets[{part}]": key for part, key in enumerate(parts)}
        return found


def read_repository(obj: JsonObject, local_roots: Sequence[Path] = (), token_roots: Sequence[Path] = ()) -> Repository:
    """Read the source of a PackageRepository; folders must lie below one of ``local_roots``, token files below one of
    ``token_roots``. Raises SpecError.
    """
    try:
        kinds = [kind for kind in KINDS if find_object(obj, "spec", kind)]
        if len(kinds) != 1:
            raise SpecError(f"spec: expected exactly one of {', '.join(KINDS[:-1])} and {KINDS[-1]}")
        if kinds[0] == "helm":
            return _helm(obj)
        if kinds[0] == "git":
            return _git(obj, local_roots)
        if kinds[0] == "archive":
            return _archive(obj)
        if kinds[0] != "registry":
            path = _local_path(find_str(obj, "spec", kinds[0], "path"), f"spec.{kinds[0]}.path", local_roots)
            if kinds[0] == "layout":
                return Repository(LayoutSource(path, read_policy(obj)), None)
            if has_policy(obj):
                raise SpecError(
                    "spec.verify: a folder of package folders has no signatures; use a layout, or a registry"
                )
            return Repository(FolderSource(path), None)
        return _registry(obj, token_roots)
    except (FormatError, PackageError) as error:
        raise SpecError(f"spec: {error}; correct the PackageRepository") from error


def with_secrets(repository: Repository, secrets: Mapping[ObjectKey, JsonObject | None]) -> Source:
    """Return the source with the login and the certificates from its Secrets.

    Raises SpecError if a Secret is missing or unusable.
    """
    source = repository.source
    if isinstance(source, LayoutSource | FolderSource):
        return source
    if isinstance(source, ArchiveSource):
        source = with_carried(source, repository.carried, secrets)
    if (key := repository.credentials) is not None:
        where = f"spec.{repository.field}.credentialsSecret: {_named(key)}"
        secret = _present(secrets.get(key), where)
        if isinstance(source, GitSource) and source.url.startswith("ssh://"):
            return replace(source, ssh=_ssh_key(secret, where))
        try:
            credentials = _credentials(secret, *_place(source))
        except (FormatError, PackageError) as error:
            raise SpecError(f"{where}: {error}") from error
        if credentials is None:
            raise SpecError(
                f"{where} has no login for {_place(source)[0]}; add a .dockerconfigjson that names that host, or the "
                "keys username and password"
            )
        source = replace(source, credentials=replace(credentials, realms=repository.realms))
    if (key := repository.tls) is not None:
        where = f"spec.{repository.field}.tlsSecret: {_named(key)}"
        ca, client = _certificates(_present(secrets.get(key), where), where)
        ca = "\n".join(text for text in (source.ca, ca) if text)
        if isinstance(source, GitSource):
            raise AssertionError("spec.git: tlsSecret cannot be used with a git repository")
        source = replace(source, ca=ca, client=client)
    return source


def _place(source: RegistrySource | HelmSource | GitSource | ArchiveSource) -> tuple[RegistryAddress, str]:
    """Return the server and the path for which a login is needed."""
    if isinstance(source, RegistrySource):
        return source.address.registry, source.address.path
    place = read_url(source.server if isinstance(source, ArchiveSource) else source.url)
    return place.registry, place.path.strip("/")


def _named(key: ObjectKey) -> str:
    return f"Secret {key.namespace}/{key.name}"


def _present(secret: JsonObject | None, where: str) -> JsonObject:
    if secret is None:
        raise SpecError(f"{where} does not exist; create it, or correct the name")
    return secret


def _certificates(secret: JsonObject, where: str) -> tuple[str, ClientCertificate | None]:
    """Return the CA and the client's certificate in a Secret: ``ca.crt``, ``tls.crt`` and ``tls.key``."""
    try:
        data = {key: value.decode("ascii") for key, value in secret_data(secret).items() if key in _TLS_KEYS}
    except (FormatError, UnicodeDecodeError) as error:
        raise SpecError(f"{where}: expected PEM text in ca.crt, tls.crt and tls.key; correct the Secret") from error
    ca, certificate, private = (data.get(key, "") for key in _TLS_KEYS)
    if bool(certificate) != bool(private):
        raise SpecError(f"{where}: expected tls.crt and tls.key together, found one of them; add the other one")
    if not (ca or certificate):
        raise SpecError(f"{where}: expected ca.crt, or tls.crt and tls.key, found none of them; correct the Secret")
    for key, text in data.items():
        if text and "-----BEGIN " not in text:
            raise SpecError(f"{where}: {key}: expected PEM text; correct the Secret")
    return ca, ClientCertificate(certificate, private) if certificate else None


def _registry(obj: JsonObject, token_roots: Sequence[Path]) -> Repository:
    text = find_str(obj, "spec", "registry", "repo")
    scheme = find_str(obj, "spec", "registry", "scheme", default="HTTPS").upper()
    if not text:
        raise SpecError("spec.registry.repo: required, such as registry.example/packages")
    if scheme not in {"HTTP", "HTTPS"}:
        raise SpecError(f"spec.registry.scheme: {scheme!r} is neither HTTP nor HTTPS")
    parsed = parse_repository(text.rstrip("/"))
    address = RepositoryAddress(parsed.registry, parsed.path, "http" if scheme == "HTTP" else "https")
    ca = _authority(obj, "registry")
    realms = _realms(obj)
    login, tls = _secret(obj, "credentialsSecret"), _secret(obj, "tlsSecret")
    token = _token_file(obj, token_roots)
    if login is not None and token is not None:
        raise SpecError("spec.registry: expected one of credentialsSecret and tokenFile, found both; remove one")
    return Repository(
        RegistrySource(address, None, ca, realms, token=token, verify=read_policy(obj)), login, realms, tls
    )


def _helm(obj: JsonObject) -> Repository:
    url = find_str(obj, "spec", "helm", "url").rstrip("/")
    if not url:
        raise SpecError("spec.helm.url: required, such as https://charts.example/stable")
    read_url(url)
    if has_policy(obj) and find(obj, "spec", "verify", "keyring") is None:
        raise SpecError("spec.verify: a Helm repository has provenance files instead of cosign signatures; use keyring")
    source = HelmSource(url, ca=_authority(obj, "helm"), verify=read_policy(obj))
    login, tls = (_secret(obj, field, "helm") for field in ("credentialsSecret", "tlsSecret"))
    return Repository(source, login, tls=tls, field="helm")


def _git(obj: JsonObject, roots: Sequence[Path]) -> Repository:
    field = find_object(obj, "spec", "git")
    url, path, package = find_str(field, "url").rstrip("/"), find_str(field, "path"), find_str(field, "package")
    if not url:
        raise SpecError("spec.git.url: required, such as https://git.example/team/packages")
    is_remote = read_git_url(url) is not None
    if any(part in {"", ".", ".."} for part in path.split("/")) and path:
        raise SpecError(
            f"spec.git.path: expected a folder of the repository, such as deploy/packages, found {path!r:.200}"
        )
    if package and not is_repository(package):
        raise SpecError(f"spec.git.package: {package!r:.200} is not the name of a package")
    _check_unsigned(obj, "a git repository")
    source = GitSource(url, path, package, read_pattern(find_str(field, "tags")), ca=_authority(obj, "git"))
    if source.local is not None:
        _local_path(str(source.local), "spec.git.url", roots)
    login = _secret(obj, "credentialsSecret", "git")
    if login is not None and not is_remote:
        raise SpecError(
            "spec.git.credentialsSecret: expected an http(s) or ssh URL in spec.git.url; a local repository needs no login"
        )
    return Repository(source, login, field="git")


def _archive(obj: JsonObject) -> Repository:
    server = find_str(obj, "spec", "archive", "server").rstrip("/")
    if server:
        read_url(server)
    _check_unsigned(obj, "an archive")
    files, carried = read_archives(obj)
    login, tls = (_secret(obj, each, "archive") for each in ("credentialsSecret", "tlsSecret"))
    if (login or tls) and not server:
        raise SpecError(
            "spec.archive.server: required with a login or a certificate, which are sent only to this server"
        )
    source = ArchiveSource(files, server, ca=_authority(obj, "archive"))
    return Repository(source, login, tls=tls, field="archive", carried=carried)


def _check_unsigned(obj: JsonObject, kind: str) -> None:
    """Raise SpecError if signatures are demanded of a source that cannot have signatures."""
    if has_policy(obj):
        raise SpecError(f"spec.verify: {kind} has no signatures; use a layout, or a registry")


def _authority(obj: JsonObject, field: str) -> str:
    ca = find_str(obj, "spec", field, "ca")
    if ca and (len(ca) > MAX_CA or "-----BEGIN CERTIFICATE-----" not in ca):
        raise SpecError(f"spec.{field}.ca: not a certificate in PEM form")
    return ca


def _token_file(obj: JsonObject, roots: Sequence[Path]) -> TokenFile | None:
    named = find_object(obj, "spec", "registry", "tokenFile")
    if not named:
        return None
    path = _local_path(find_str(named, "path"), "spec.registry.tokenFile.path", roots, "--registry-tokens", "tokens")
    return TokenFile(path, find_str(named, "username"))


def _realms(obj: JsonObject) -> tuple[str, ...]:
    named = find_list(obj, "spec", "registry", "tokenRealms")
    if len(named) > MAX_REALMS:
        raise SpecError(f"spec.registry.tokenRealms: expected at most {MAX_REALMS} hosts, found {len(named)}")
    realms: list[str] = []
    for host in named:
        if not isinstance(host, str) or not _HOST.match(host):
            raise SpecError("spec.registry.tokenRealms: expected hosts without scheme and port, such as auth.example")
        realms.append(host.lower())
    return tuple(realms)


def _secret(obj: JsonObject, field: str, kind: str = "registry") -> ObjectKey | None:
    named = find_object(obj, "spec", kind, field)
    if not named:
        return None
    name, namespace = find_str(named, "name"), find_str(named, "namespace")
    if not (name and namespace):
        raise SpecError(f"spec.{kind}.{field}: name and namespace are both needed")
    return ObjectKey(SECRET, namespace, name)


def _credentials(secret: JsonObject, registry: RegistryAddress, path: str) -> Credentials | None:
    data = secret_data(secret)
    for key in _DOCKER_KEYS:
        if key in data:
            return read_docker_config(data[key], registry, path)
    if "username" in data and "password" in data:
        try:
            return Credentials(data["username"].decode(), data["password"].decode())
        except UnicodeDecodeError as error:
            raise FormatError("username and password must be text") from error
    return None


def _ssh_key(secret: JsonObject, where: str) -> SshKey:
    """Return the key of a Secret of the type ``kubernetes.io/ssh-auth``, with the host keys in the same Secret."""
    try:
        data = secret_data(secret)
        private, hosts = (data.get(key, b"").decode() for key in _SSH_KEYS)
    except (FormatError, UnicodeDecodeError) as error:
        raise SpecError(f"{where}: expected text in {_SSH_KEYS[0]} and {_SSH_KEYS[1]}; correct the Secret") from error
    if "PRIVATE KEY-----" not in private:
        raise SpecError(f"{where}: expected a private key for ssh in {_SSH_KEYS[0]}, found none; correct the Secret")
    if not hosts.strip():
        raise SpecError(
            f"{where}: expected the keys of the server in {_SSH_KEYS[1]}, found none; add the output of "
            "`ssh-keyscan HOST`, after a comparison with the keys that the server's owner publishes"
        )
    return SshKey(private, hosts)


def _local_path(
    text: str, where: str, roots: Sequence[Path], option: str = "--local-packages", things: str = "packages"
) -> Path:
    path = Path(text)
    if not text or not path.is_absolute():
        raise SpecError(f"{where}: required, an absolute path on the daemon's machine")
    if "\0" in text:
        raise SpecError(f"{where}: expected a path without NUL characters")
    path = Path(os.path.realpath(path))
    if not any(path.is_relative_to(os.path.realpath(root)) for root in roots):
        raise SpecError(
            f"{where}: {text} is not below a folder that the daemon may read {things} from; "
            f"start the daemon with {option} DIR, or name a folder below an allowed one"
        )
    return path
