"""The lists of repositories and of versions: `get repositories` and `get versions`."""

from collections.abc import Sequence
from typing import Final

from wharfinger.debug.client.unknown_names import nearest_hint
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.listing.listing import Column, Listing, NotListedError, Row, Selection, labels_of, short_digest
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.times import format_time
from wharfinger.runtime.inspector import IndexSnapshot, Inspector, RepositorySnapshot, VersionSnapshot

_REPOSITORIES: Final = tuple(
    map(Column, ("NAME", "READY", "USERS", "PACKAGES", "VERSIONS", "SCANNED", "SOURCE", "MESSAGE"))
)
_VERSIONS: Final = tuple(map(Column, ("REPOSITORY", "PACKAGE", "VERSION", "CHANNELS", "DIGEST", "KUBERNETES", "NOTES")))


def repositories_list() -> Listing:
    """Return the list of PackageRepositories."""
    return Listing(
        "repositories",
        _REPOSITORIES,
        _read_repositories,
        _repositories_document,
        when_empty="no PackageRepositories",
        namespaced=False,
    )


def versions_list() -> Listing:
    """Return the list of the versions of each package for which a resource names a version range or a channel.

    The table has only the versions whose details are known; ``-o name`` and documents have all versions.
    """
    return Listing(
        "versions",
        _VERSIONS,
        _read_versions,
        _versions_document,
        when_empty="no versions with details: no resource names a version range or a channel, or the repository gives only the "
        "names of versions (-o name prints them), or it has not been scanned yet",
        namespaced=False,
        labelled=False,
    )


async def _read_repositories(inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
    found, name = await inspector.repositories(), selection.name
    if name is not None and name not in {each.name for each in found}:
        hint = nearest_hint(name, [each.name for each in found], "wharfinger get repositories")
        raise NotListedError(f"no PackageRepository named {name!r}; {hint}")
    return tuple(_repository_row(each) for each in found if name in (None, each.name))


def _repository_row(each: RepositorySnapshot) -> Row:
    count = sum(len(index.versions) for index in each.packages)
    scanned = format_time(each.scanned) if each.scanned is not None else "never"
    numbers = map(str, (each.users, len(each.packages), count))
    message = each.message if each.ready != "True" else ""
    labels = labels_of(each.labels)
    cells = (each.name, each.ready, *numbers, scanned, each.source, message)
    return Row((each.name,), each.name, cells, record_to_json(each, without={"name"}), labels=labels)


def _repositories_document(rows: Sequence[Row], _selection: Selection) -> JsonValue:
    return {"repositories": {row.name: row.document for row in rows}}


async def _read_versions(inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
    pairs = [(source, index) for source in await inspector.repositories() for index in source.packages]
    name = selection.name
    if name is not None:
        known = [index.package for _, index in pairs]
        pairs = [(source, index) for source, index in pairs if index.package == name]
        if not pairs:
            hint = nearest_hint(name, known, "wharfinger get versions")
            raise NotListedError(
                f"no versions of package {name!r} are known: no resource follows the package with spec.versionRange or "
                f"spec.releaseChannel; {hint}"
            )
    return tuple(row for source, index in pairs for row in _version_rows(source, index))


def _version_rows(source: RepositorySnapshot, index: IndexSnapshot) -> list[Row]:
    document: JsonObject = {"repository": source.name, **record_to_json(index)}
    detailed = {each.version: _version_cells(source, index, each) for each in index.detailed}
    bare = ("",) * len(_VERSIONS)
    rows = [
        Row(
            (source.name, index.package, version),
            version,
            detailed.get(version, bare),
            document,
            in_table=version in detailed,
        )
        for version in index.versions
    ]
    # A package without versions has no row in the table, only a document.
    return rows or [Row((source.name, index.package), "", bare, document, in_table=False)]


def _version_cells(source: RepositorySnapshot, index: IndexSnapshot, each: VersionSnapshot) -> tuple[str, ...]:
    notes = [each.unreadable] if each.unreadable else []
    notes += [f"deprecated: {each.deprecated}"] if each.deprecated else []
    notes += each.changelog[:1]
    return (
        source.name,
        index.package,
        each.version,
        ",".join(each.channels),
        short_digest(each.digest),
        each.kubernetes,
        "; ".join(notes),
    )


def _versions_document(rows: Sequence[Row], _selection: Selection) -> JsonValue:
    """Return one document for each package, which all rows of the package share."""
    found: dict[tuple[str, ...], JsonValue] = {}
    for row in rows:
        found.setdefault(row.key[:2], row.document)
    return {"packages": list(found.values())}
