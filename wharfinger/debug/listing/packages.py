"""The lists of packages: `get packages`, `get applications` and `get modules`."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from wharfinger.debug.client.unknown_names import NoSuchPackageError, one_package
from wharfinger.debug.encoding.package import package_to_json
from wharfinger.debug.listing.listing import Column, Listing, Row, Selection, short_digest
from wharfinger.debug.printing.task import doing_text
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.listing import with_article
from wharfinger.runtime.inspector import Inspector, PackageSnapshot

ARROW: Final = "→"
_COLUMNS: Final = (
    Column("NAME"),
    Column("KIND"),
    Column("PACKAGE"),
    Column("VERSION"),
    Column("REVISION", wide=True),
    Column("DIGEST", wide=True),
    Column("QUEUED", wide=True),
    Column("DOING", wide=True),
    Column("WARNINGS", wide=True),
    Column("STATE"),
    Column("TIP", wide=True),
    Column("MESSAGE"),
)


def packages_list(what: str, kind: str, arrow: str = ARROW) -> Listing:
    """Return the list of packages, limited to one ``kind`` of resource if given."""
    return Listing(what, _COLUMNS, partial(_read, kind, arrow), _document, when_empty=f"no {what}")


async def chosen_packages(inspector: Inspector, selection: Selection, kind: str = "") -> tuple[PackageSnapshot, ...]:
    """Return the packages that a selection chooses by name, namespace and labels. Raises NoSuchPackageError."""
    if selection.name is None:
        found: tuple[PackageSnapshot, ...] = await inspector.packages()
    else:
        one = await one_package(inspector, selection.name)
        if kind not in ("", one.kind):
            raise NoSuchPackageError(f"no {kind} named {selection.name!r}; it is the name of {with_article(one.kind)}")
        found = (one,)
    return tuple(each for each in found if kind in ("", each.kind) and selection.takes(_bare_row(each)))


async def _read(kind: str, arrow: str, inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
    return tuple(_row(package, arrow) for package in await chosen_packages(inspector, selection, kind))


def _bare_row(package: PackageSnapshot) -> Row:
    return Row((package.name,), package.name, (), {}, package.namespace, package.labels)


def _row(package: PackageSnapshot, arrow: str) -> Row:
    cells = (
        package.name,
        package.kind,
        package.package,
        versions_text(package, arrow),
        str(package.release_revision or ""),
        short_digest(package.installed_digest or package.digest),
        str(len(package.queue.tasks)),
        doing_text(package.queue),
        str(len(package.warnings) or ""),
        package.state,
        package.tip,
        package.message,
    )
    document = package_to_json(package)
    return Row((package.name,), package.name, cells, document, package.namespace, package.labels)


def _document(rows: Sequence[Row], selection: Selection) -> JsonValue:
    if selection.name is not None and len(rows) == 1:
        return rows[0].document
    apps: JsonObject = {}
    modules: JsonObject = {}
    for row in rows:
        (modules if row.document["kind"] == "Module" else apps)[row.name] = row.document
    return {"apps": apps, "modules": modules}


def versions_text(package: PackageSnapshot, arrow: str) -> str:
    """Return the installed version, and the wanted version while it differs: ``1.0.0 → 1.1.0``, ``→ 1.0.0``."""
    if package.version in {package.installed_version, ""}:
        return package.installed_version
    return f"{package.installed_version} {arrow} {package.version}".lstrip()
