"""``spec.archive.packages`` of a PackageRepository: for each archive its digest, and either a URL or the Secrets that carry
its bytes.

`wharfinger install` sends a folder of the user's machine to the daemon in such Secrets. The digest is in the PackageRepository,
so a Secret that somebody changed is refused. Pure.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import PackageError
from wharfinger.packages.registry.address import is_repository, is_tag
from wharfinger.packages.sources.archives import MAX_CARRIED, ArchiveFile, ArchiveSource
from wharfinger.packages.sources.web_files import read_url
from wharfinger.runtime.resources.resources import SECRET, SpecError
from wharfinger.runtime.resources.secret_data import secret_data

FIELD: Final = "spec.archive.packages"
PART_KEY: Final = "archive"
"""The key in the ``data`` of a Secret under which a part of an archive is stored."""
MAX_FILES: Final = 1_000
MAX_PARTS: Final = 16

CarriedArchives: TypeAlias = tuple[tuple[int, tuple[ObjectKey, ...]], ...]
"""For each archive whose parts are in Secrets: its index in the list, and the Secrets in the order of the parts."""


def read_archives(obj: JsonObject) -> tuple[tuple[ArchiveFile, ...], CarriedArchives]:
    """Return the archives of a PackageRepository and, for archives without a URL, the Secrets that contain them. Raises
    SpecError, FormatError.
    """
    listed = find_list(obj, "spec", "archive", "packages")
    if not 0 < len(listed) <= MAX_FILES:
        raise SpecError(f"{FIELD}: expected 1 to {MAX_FILES} archives, found {len(listed)}")
    files: dict[tuple[str, str], ArchiveFile] = {}
    carried: list[tuple[int, tuple[ObjectKey, ...]]] = []
    for number, each in enumerate(listed):
        where = f"{FIELD}[{number}]"
        entry = as_object(each, where)
        file = _file(entry, where)
        if (file.name, file.version) in files:
            raise SpecError(f"{where}: {file.name} {file.version} is listed twice; remove one of them")
        files[(file.name, file.version)] = file
        parts = _parts(entry, where)
        if bool(file.url) == bool(parts):
            raise SpecError(
                f"{where}: expected exactly one of url and secrets; remove one of them, or add the missing one"
            )
        if parts:
            carried.append((number, parts))
    return tuple(files.values()), tuple(carried)


def with_carried(
    source: ArchiveSource, carried: CarriedArchives, secrets: Mapping[ObjectKey, JsonObject | None]
) -> ArchiveSource:
    """Return the source with the bytes of those archives that are carried by Secrets. Raises SpecError if a Secret is missing or
    unusable.
    """
    files = list(source.files)
    for number, parts in carried:
        where = f"{FIELD}[{number}].secrets"
        data = b"".join(_part(key, secrets.get(key), where) for key in parts)
        if len(data) > MAX_CARRIED:
            raise SpecError(
                f"{where}: expected at most {MAX_CARRIED} bytes in Secrets, found {len(data)}; publish the archive, "
                "and set its url"
            )
        files[number] = replace(files[number], data=data)
    return replace(source, files=tuple(files))


def _file(entry: JsonObject, where: str) -> ArchiveFile:
    name, version, url = (find_str(entry, field) for field in ("name", "version", "url"))
    tag = version.replace("+", "_")
    if not is_repository(name) or not is_tag(tag):
        raise SpecError(f"{where}: expected a name, such as web, and a version, such as 1.2.3")
    try:
        if url:
            read_url(url)
        return ArchiveFile(name, tag, Digest(find_str(entry, "digest")), url)
    except PackageError as error:
        raise SpecError(f"{where}: {error}") from error


def _parts(entry: JsonObject, where: str) -> tuple[ObjectKey, ...]:
    listed = find_list(entry, "secrets")
    if len(listed) > MAX_PARTS:
        raise SpecError(f"{where}.secrets: expected at most {MAX_PARTS} Secrets, found {len(listed)}")
    keys = [ObjectKey(SECRET, find_str(each, "namespace"), find_str(each, "name")) for each in listed]
    if not all(key.name and key.namespace for key in keys):
        raise SpecError(f"{where}.secrets: name and namespace are both needed")
    return tuple(keys)


def _part(key: ObjectKey, secret: JsonObject | None, where: str) -> bytes:
    if secret is None:
        raise SpecError(
            f"{where}: Secret {key.namespace}/{key.name} does not exist; install the package again, or correct the name"
        )
    try:
        data = secret_data(secret)
    except FormatError as error:
        raise SpecError(f"{where}: Secret {key.namespace}/{key.name}: {error}") from error
    if PART_KEY not in data:
        raise SpecError(
            f"{where}: Secret {key.namespace}/{key.name} has no key {PART_KEY!r}; install the package again"
        )
    return data[PART_KEY]
