"""The output of `get repositories` and `get versions`."""

from difflib import get_close_matches
from typing import Final

from wharfinger.debug.encoding.encoding import repositories_to_json
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.errors import DebugError
from wharfinger.debug.printing.output import OUTPUT_FORMATS, render
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_table import layout
from wharfinger.kube.times import format_time
from wharfinger.runtime.inspector import IndexSnapshot, Inspector, RepositorySnapshot, VersionSnapshot

_REPOSITORIES: Final = ("NAME", "READY", "USERS", "PACKAGES", "VERSIONS", "SCANNED", "SOURCE", "MESSAGE")
_VERSIONS: Final = ("REPOSITORY", "PACKAGE", "VERSION", "CHANNELS", "DIGEST", "KUBERNETES", "NOTES")
_DIGEST_DIGITS: Final = 12
_NEAR: Final = 0.6


class NoSuchRepositoryError(DebugError):
    """The daemon has no PackageRepository, or no followed package, of this name."""


async def repositories_text(inspector: Inspector, name: str | None, output: str, columns: int | None) -> str:
    """Return the output of `get repositories`: all, or one; empty if there are none. Raises NoSuchRepositoryError."""
    found = await inspector.repositories()
    if name is not None:
        known = [each.name for each in found]
        found = tuple(each for each in found if each.name == name)
        if not found:
            raise NoSuchRepositoryError(f"no PackageRepository named {name!r}; {_hint(name, known, 'repositories')}")
    if output in OUTPUT_FORMATS:
        return render(repositories_to_json(found), output)
    if output == "name":
        return "".join(f"{printable(each.name)}\n" for each in found)
    return _table(_REPOSITORIES, [_repository_row(each) for each in found], columns)


async def versions_text(inspector: Inspector, name: str | None, output: str, columns: int | None) -> str:
    """Return the output of `get versions`: of all followed packages, or of one; empty if there are none.

    A table has the versions whose details are known, ``-o name`` and documents have all of them. Raises NoSuchRepositoryError.
    """
    pairs = [(source, index) for source in await inspector.repositories() for index in source.packages]
    if name is not None:
        known = [index.package for _, index in pairs]
        pairs = [(source, index) for source, index in pairs if index.package == name]
        if not pairs:
            hint = _hint(name, known, "versions")
            raise NoSuchRepositoryError(
                f"no versions of a package {name!r} are followed: no resource follows it with spec.versionRange or "
                f"spec.releaseChannel; {hint}"
            )
    if output in OUTPUT_FORMATS:
        documents: list[JsonValue] = [_document(source, index) for source, index in pairs]
        return render({"packages": documents}, output)
    if output == "name":
        return "".join(f"{printable(version)}\n" for _, index in pairs for version in index.versions)
    rows = [_version_row(source, index, each) for source, index in pairs for each in index.detailed]
    return _table(_VERSIONS, rows, columns)


def _document(source: RepositorySnapshot, index: IndexSnapshot) -> JsonValue:
    return {"repository": source.name, **record_to_json(index)}


def _repository_row(each: RepositorySnapshot) -> tuple[str, ...]:
    count = sum(len(index.versions) for index in each.packages)
    scanned = format_time(each.scanned) if each.scanned is not None else "never"
    numbers = map(str, (each.users, len(each.packages), count))
    message = each.message if each.ready != "True" else ""
    return printable(each.name), each.ready, *numbers, scanned, printable(each.source), printable(message)


def _version_row(source: RepositorySnapshot, index: IndexSnapshot, each: VersionSnapshot) -> tuple[str, ...]:
    notes = [f"deprecated: {each.deprecated}"] if each.deprecated else []
    notes += each.changelog[:1]
    return (
        printable(source.name),
        printable(index.package),
        printable(each.version),
        printable(",".join(each.channels)),
        each.digest.removeprefix("sha256:")[:_DIGEST_DIGITS],
        printable(each.kubernetes),
        printable("; ".join(notes)),
    )


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]], columns: int | None) -> str:
    return "".join(f"{line}\n" for line in layout(header, rows, columns)) if rows else ""


def _hint(name: str, known: list[str], what: str) -> str:
    near = get_close_matches(name, known, 1, _NEAR)
    return f"did you mean {near[0]!r}?" if near else f"`wharfinger get {what}` lists all"
