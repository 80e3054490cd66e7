"""The lists of the parts of packages: `get queues`, `get hooks`, `get watches` and `get resources`.

NAME, ``-n`` and ``-l`` choose packages. For resources, ``-n`` and ``-l`` choose the objects themselves.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from wharfinger.debug.client.unknown_names import no_such_package
from wharfinger.debug.encoding.encoding import queue_to_json
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.listing.listing import Column, Listing, Row, Selection, labels_of
from wharfinger.debug.listing.packages import chosen_packages
from wharfinger.debug.printing.task import doing_text
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.times import format_time
from wharfinger.runtime.inspector import HookSnapshot, Inspector, MonitorSnapshot, PackageSnapshot

if TYPE_CHECKING:
    from wharfinger.runtime.package_details import ResourceSnapshot

_QUEUES: Final = (
    Column("NAME"),
    Column("TASKS"),
    Column("RUNNING"),
    Column("RETRYING"),
    Column("PARKED"),
    Column("DOING"),
    Column("ERROR", wide=True),
)
_HOOKS: Final = (
    Column("PACKAGE"),
    Column("HOOK"),
    Column("RUNS"),
    Column("LAST-RUN"),
    Column("WAITING"),
    Column("REDUCED", wide=True),
    Column("BINDINGS", wide=True),
    Column("LAST-ERROR"),
)
_WATCHES: Final = (
    Column("PACKAGE"),
    Column("HOOK"),
    Column("BINDING"),
    Column("STATE"),
    Column("OBJECTS"),
    Column("WATCHES", wide=True),
    Column("WAITING"),
    Column("EVENTS"),
    Column("DROPPED", wide=True),
    Column("LAST-ERROR"),
)
_RESOURCES: Final = (
    Column("PACKAGE"),
    Column("KIND"),
    Column("NAMESPACE"),
    Column("NAME"),
    Column("HEALTH"),
    Column("APPLY", wide=True),
    Column("DRIFT", wide=True),
    Column("MESSAGE"),
)


def queues_list() -> Listing:
    """Return the list of queues, one row for each package."""
    return Listing("queues", _QUEUES, _read_queues, partial(_by_name, "queues"), when_empty="no queues")


def hooks_list() -> Listing:
    """Return the list of hooks of loaded packages."""
    return Listing("hooks", _HOOKS, _read_hooks, partial(_items, "hooks"), when_empty="no hooks")


def watches_list() -> Listing:
    """Return the list of watches: a row for each ``kubernetes`` binding of a hook whose watch has been started."""
    return Listing(
        "watches",
        _WATCHES,
        _read_watches,
        partial(_items, "watches"),
        when_empty="no watches: no watch of a kubernetes binding has been started",
    )


def resources_list() -> Listing:
    """Return the list of objects of the packages' releases."""
    return Listing("resources", _RESOURCES, _read_resources, partial(_items, "resources"), when_empty="no resources")


def resource_message(resource: "ResourceSnapshot") -> str:
    """Return why an object cannot be applied, or else why it is not ready."""
    return resource.error or resource.message


async def _read_queues(inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
    return tuple(_queue_row(package) for package in await chosen_packages(inspector, selection))


def _queue_row(package: PackageSnapshot) -> Row:
    tasks = package.queue.tasks
    retrying = [task for task in tasks if task.retry_in_s is not None]
    counts = (len(tasks), sum(task.running for task in tasks), len(retrying), sum(task.parked for task in tasks))
    error = next((task.error for task in tasks if task.error), "")
    cells = (package.name, *map(str, counts), doing_text(package.queue), error)
    return _row_of(package, (), package.name, cells, queue_to_json(package.queue))


async def _read_hooks(inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
    packages = await chosen_packages(inspector, selection)
    return tuple(_hook_row(package, hook) for package in packages for hook in package.hooks)


def _hook_row(package: PackageSnapshot, hook: HookSnapshot) -> Row:
    last = format_time(hook.last_run) if hook.last_run is not None else "never"
    numbers = (str(hook.waiting), str(hook.reduced))
    cells = (package.name, hook.name, str(hook.runs), last, *numbers, ", ".join(hook.bindings), hook.last_error)
    document: JsonObject = {"package": package.name, **record_to_json(hook)}
    return _row_of(package, (hook.name,), f"{package.name}/{hook.name}", cells, document)


async def _read_watches(inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
    packages = await chosen_packages(inspector, selection)
    return tuple(_watch_row(package, monitor) for package in packages for monitor in package.monitors)


def _watch_row(package: PackageSnapshot, monitor: MonitorSnapshot) -> Row:
    state = "listing" if not monitor.listed else "locked" if monitor.locked else "watching"
    counts = (monitor.objects, monitor.watches, monitor.waiting, monitor.events, monitor.dropped)
    cells = (package.name, monitor.hook, monitor.binding, state, *map(str, counts), monitor.last_error)
    document: JsonObject = {"package": package.name, **record_to_json(monitor)}
    name = f"{package.name}/{monitor.hook}/{monitor.binding}"
    return _row_of(package, (monitor.hook, monitor.binding), name, cells, document)


async def _read_resources(inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
    """Read the resources of the packages with one request for each package, so that no answer keeps the daemon busy
    for long.
    """
    if selection.name is not None:
        found = await inspector.resources(selection.name)
        if found is None:
            raise await no_such_package(inspector, selection.name)
        return tuple(_resource_row(each) for each in found)
    rows: list[Row] = []
    for package in await inspector.packages():
        rows += (_resource_row(each) for each in await inspector.resources(package.name) or ())
    return tuple(rows)


def _resource_row(each: "ResourceSnapshot") -> Row:
    place = f"{each.namespace}/{each.name}" if each.namespace else each.name
    cells = (
        each.package,
        each.kind,
        each.namespace,
        each.name,
        each.health,
        each.apply,
        each.drift,
        resource_message(each),
    )
    return Row(
        (each.package, each.kind, place),
        f"{each.kind}/{place}",
        cells,
        record_to_json(each),
        each.namespace,
        labels_of(each.labels),
    )


def _row_of(
    package: PackageSnapshot, more: tuple[str, ...], name: str, cells: tuple[str, ...], document: JsonObject
) -> Row:
    return Row((package.name, *more), name, cells, document, package.namespace, package.labels)


def _items(what: str, rows: Sequence[Row], _selection: Selection) -> JsonValue:
    return {what: [row.document for row in rows]}


def _by_name(what: str, rows: Sequence[Row], _selection: Selection) -> JsonValue:
    return {what: {row.name: row.document for row in rows}}
