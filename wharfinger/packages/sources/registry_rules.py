"""Mirrors and rewrite rules of registries by prefix, from a file in the format of ``containers-registries.conf(5)``.

podman, skopeo and CRI-O read the same file, so a site has one list for its nodes and for this program::

    [[registry]]
    prefix = "ghcr.io/org"                      # the longest matching prefix counts; "*.example.com" is every subdomain
    location = "registry.corp.example/ghcr"     # replaces the prefix; without a location, the prefix is kept
    blocked = false
    [[registry.mirror]]                         # mirrors are tried in the order of the file, and before the location
    location = "mirror.corp.example/ghcr"
    insecure = true                             # plain HTTP
    pull-from-mirror = "digest-only"            # the requests that the mirror gets: "digest-only", "tag-only" or "all"

Keys outside of ``[[registry]]`` have other purposes, and are ignored. An unknown key inside of ``[[registry]]`` is an error:
if it were ignored, a host could get a request that it must not get.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from wharfinger.packages.errors import AddressError, RegistryError
from wharfinger.packages.registry.address import (
    RegistryAddress,
    RepositoryAddress,
    check_repository,
    is_repository,
    parse_registry,
)

MAX_FILE: Final = 1024 * 1024
MAX_RULES: Final = 1000
_KEYS: Final = frozenset({"prefix", "location", "insecure", "blocked", "mirror-by-digest-only", "mirror"})
_MIRROR_KEYS: Final = frozenset({"location", "insecure", "pull-from-mirror"})
_PULLS: Final = ("all", "digest-only", "tag-only")

Pull: TypeAlias = Literal["all", "digest-only", "tag-only"]
_Table: TypeAlias = Mapping[str, object]


class RulesFileError(Exception):
    """The file of rules cannot be read, or a rule in it is invalid. The daemon then does not start."""


@dataclass(frozen=True, slots=True)
class Place:
    """The address of a registry or mirror, possibly with the beginning of a path. ``insecure`` means plain HTTP. ``pull``
    determines which requests are sent to it: all, only those by digest, or only those by tag.
    """

    location: str
    insecure: bool = False
    pull: Pull = "all"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for all repositories below ``prefix``. Their ``mirrors`` are tried in order, and then the place ``own``."""

    prefix: str
    own: Place
    mirrors: tuple[Place, ...] = ()
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A repository to try. ``pull`` determines which requests are sent to it: all, only those by digest, or only
    those by tag.
    """

    address: RepositoryAddress
    pull: Pull = "all"


@dataclass(frozen=True, slots=True)
class RegistryRules:
    """The rules of a file; without rules, the only candidate for a repository is the repository itself."""

    rules: tuple[Rule, ...] = ()
    file: str = ""

    def candidates(self, repository: RepositoryAddress) -> tuple[Candidate, ...]:
        """Return the repositories to try in place of a repository, in order.

        Raises RegistryError if a rule blocks the repository, or leads to an invalid one.
        """
        fitting = [(length, rule) for rule in self.rules if (length := _matched(rule.prefix, repository))]
        if not fitting:
            return (Candidate(repository),)
        length, rule = max(fitting, key=lambda pair: pair[0])
        if rule.blocked:
            raise RegistryError(
                f"{repository}: blocked by the rule for {rule.prefix} in {self.file}; remove the rule, or name another "
                "repository",
                transient=False,
            )
        rest = str(repository)[length:]
        return tuple(_candidate(repository, place, rest, rule) for place in (*rule.mirrors, rule.own))


NO_RULES: Final = RegistryRules()


def read_registry_rules(path: Path) -> RegistryRules:
    """Read a file of rules. Blocking. Raises RulesFileError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise RulesFileError(f"{path}: expected at most {MAX_FILE} bytes; remove rules")
        document = tomllib.loads(data.decode())
        return RegistryRules(tuple(_rules(document, str(path))), str(path))
    except OSError as error:
        raise RulesFileError(f"{path}: cannot be read: {error.strerror}; name an existing file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise RulesFileError(f"{path}: not TOML: {error}; see containers-registries.conf(5)") from error


def _rules(document: _Table, path: str) -> Iterator[Rule]:
    for number, table in enumerate(_tables(document, "registry", path)):
        where = f"{path}: registry {number + 1}"
        _check_keys(table, _KEYS, where)
        location, prefix = _text(table, "location", where), _text(table, "prefix", where)
        prefix = prefix or location
        if prefix.startswith("*."):
            if location or "/" in prefix:
                raise RulesFileError(
                    f"{where}: expected a prefix like *.example.com without location, found {prefix!r}"
                )
        else:
            _check_place(prefix, where)
            host, slash, rest = prefix.partition("/")
            prefix = f"{parse_registry(host)[0]}{slash}{rest}"  # the host in lower case, as in addresses
        by_digest = _flag(table, "mirror-by-digest-only", where)
        mirrors = tuple(
            _mirror(each, f"{where}: mirror {at + 1}", by_digest=by_digest)
            for at, each in enumerate(_tables(table, "mirror", where))
        )
        if location:
            _check_place(location, where)
        own = Place(location, _flag(table, "insecure", where))
        yield Rule(prefix, own, mirrors, _flag(table, "blocked", where))


def _mirror(table: _Table, where: str, *, by_digest: bool) -> Place:
    _check_keys(table, _MIRROR_KEYS, where)
    location = _text(table, "location", where)
    _check_place(location, where)
    pull = _text(table, "pull-from-mirror", where) or ("digest-only" if by_digest else "all")
    if pull not in _PULLS:
        raise RulesFileError(f"{where}: pull-from-mirror: expected one of {', '.join(_PULLS)}, found {pull!r}")
    return Place(location, _flag(table, "insecure", where), cast("Pull", pull))


def _tables(document: _Table, key: str, where: str) -> list[_Table]:
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found) or len(found) > MAX_RULES:
        raise RulesFileError(
            f"{where}: expected at most {MAX_RULES} tables [[{key}]]; see containers-registries.conf(5)"
        )
    return cast("list[_Table]", found)


def _check_keys(table: _Table, known: frozenset[str], where: str) -> None:
    for key in sorted(table):
        if key not in known:
            raise RulesFileError(f"{where}: {key!r} is not known; remove it, or correct it: {', '.join(sorted(known))}")


def _text(table: _Table, key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise RulesFileError(f"{where}: {key}: expected text, found {type(value).__name__}; put it in quotes")
    return value.rstrip("/")


def _flag(table: _Table, key: str, where: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise RulesFileError(f"{where}: {key}: expected true or false, found {type(value).__name__}")
    return value


def _check_place(text: str, where: str) -> None:
    try:
        host, _, path = text.partition("/")
        parse_registry(host)
        if path:
            check_repository(path)
    except AddressError as error:
        raise RulesFileError(f"{where}: expected host[:port][/path], found {text[:200]!r}: {error}") from error


def _matched(prefix: str, repository: RepositoryAddress) -> int:
    """Return how many characters of the repository's address match the prefix; 0 if the prefix does not match."""
    text = str(repository)
    if prefix.startswith("*."):
        host = str(repository.registry)
        return len(host) if repository.registry.host.endswith(prefix[1:].lower()) else 0
    return len(prefix) if text == prefix or text.startswith(f"{prefix}/") else 0


def _candidate(repository: RepositoryAddress, place: Place, rest: str, rule: Rule) -> Candidate:
    if not place.location:  # without a location, the repository's own address is used
        scheme = "http" if place.insecure else repository.scheme
        return Candidate(RepositoryAddress(repository.registry, repository.path, scheme), place.pull)
    host, _, path = f"{place.location}{rest}".partition("/")
    registry, scheme = parse_registry(host, insecure=place.insecure)
    if _same(registry, repository.registry) and not place.insecure:
        scheme = repository.scheme
    if not is_repository(path):
        raise RegistryError(
            f"{repository}: the rule for {rule.prefix} leads to {host}/{path}, which is not a valid repository; correct the rule",
            transient=False,
        )
    return Candidate(RepositoryAddress(registry, path, scheme), place.pull)


def _same(one: RegistryAddress, other: RegistryAddress) -> bool:
    return one == other
