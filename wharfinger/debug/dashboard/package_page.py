"""The page of a package. Pure.

It shows the package's state with a remedy, its conditions, objects with their health, drift, hooks with their output, queue,
history, Events, log, and the graph of the packages related to it.
"""

from typing import Final

from wharfinger.debug.dashboard.blocks import (
    Block,
    Cell,
    Facts,
    Folded,
    Items,
    Page,
    Picture,
    Preformatted,
    Section,
    Table,
    Tone,
)
from wharfinger.debug.dashboard.overview_page import package_href, state_cell, tasks_table
from wharfinger.debug.dashboard.source import PackageAnswer
from wharfinger.debug.listing.package_parts import resource_message
from wharfinger.debug.listing.packages import ARROW, versions_text
from wharfinger.debug.package.description import RECENT
from wharfinger.debug.printing.log_line import log_line_text
from wharfinger.debug.printing.stage import stage_text
from wharfinger.formats.listing import counted
from wharfinger.kube.times import format_time
from wharfinger.runtime.inspector import HistorySnapshot, HookSnapshot, PackageSnapshot
from wharfinger.runtime.package_details import ClusterEventSnapshot, LogSnapshot, ResourceSnapshot
from wharfinger.runtime.scheduler_details import ExplanationSnapshot

MOST_EVENTS: Final = 50
MOST_LINES: Final = 200
MOST_HOOK_LINES: Final = 50
_HEALTH: Final = {"Current": Tone.GOOD, "InProgress": Tone.WARNING, "Failed": Tone.BAD, "Absent": Tone.BAD}
_TRUTH: Final = {"True": Tone.GOOD, "False": Tone.BAD}


def package_page(one: PackageAnswer, picture: Picture | None) -> Page:
    """Return the page of a package. ``picture`` shows the package and those related to it; None if they cannot be drawn."""
    found = one.description
    package = found.package
    not_drawn = "Not drawn: too many packages are related to this one, or it was created or removed just now."
    around: tuple[Block, ...] = (picture,) if picture is not None else (Items((), not_drawn),)
    sections = (
        Section("state", "State", (_facts(package), *_explained(found.explanation))),
        Section("conditions", "Conditions", (_conditions(package),)),
        Section("resources", "Resources", (_resources(found.resources),)),
        Section("drift", "Drift", (_drift(package, found.resources),)),
        Section("hooks", "Hooks", (_hooks(package), *_hook_logs(package, one.log))),
        Section("queue", "Queue", (tasks_table([package.queue], with_package=False),)),
        Section("history", "History", (_history(found.history),)),
        Section("events", "Events", (_events(found.events, found.events_problem),)),
        Section("log", "Log", (_log(one.log),)),
        Section("graph", "Dependencies", around),
    )
    return Page(package.name, package_href(package.name), sections, f"{package.name}: {package.state}")


def missing_page(name: str, why: str) -> Page:
    """Return the page of a package that the daemon does not know."""
    return Page(name, package_href(name), (Section("state", "State", (Items((Cell(why, Tone.BAD),), ""),)),), why)


def _facts(package: PackageSnapshot) -> Facts:
    labels = ", ".join(f"{key}={value}" for key, value in sorted(package.labels.items()))
    pairs = (
        ("State", state_cell(package.state)),
        ("Message", Cell(package.message)),
        ("Stage", Cell(stage_text(package))),
        ("Kind", Cell(package.kind)),
        ("Namespace", Cell(package.namespace)),
        ("Package", Cell(package.package)),
        ("Version", Cell(versions_text(package, ARROW))),
        ("Digest", Cell(package.installed_digest or package.digest)),
        ("Revision", Cell(str(package.release_revision or ""))),
        ("Update", Cell(package.update)),
        ("Rollback", Cell(package.rollback)),
        ("Suspended", Cell("yes" if package.suspended else "", Tone.WARNING)),
        ("Maintenance", Cell(package.maintenance, Tone.WARNING)),
        ("Labels", Cell(labels)),
        ("URLs", Cell(", ".join(package.urls))),
        *(("Warning", Cell(each, Tone.WARNING)) for each in package.warnings),
    )
    return Facts(tuple((name, cell) for name, cell in pairs if cell.text))


def _explained(explanation: ExplanationSnapshot | None) -> tuple[Block, ...]:
    if explanation is None or explanation.ready:
        return ()
    rows = tuple(
        (
            Cell(cause.subject),
            Cell(cause.state, Tone.WARNING),
            Cell(cause.message),
            Cell(format_time(cause.since) if cause.since is not None else ""),
        )
        for cause in explanation.causes
    )
    causes = Table("Why, the root cause last", ("Subject", "State", "Message", "Since"), rows, "No cause is known.")
    todo = [Cell(f"What to do: {explanation.remedy}")] if explanation.remedy else []
    return causes, Items((*todo, *(Cell(f"Also: {each}") for each in explanation.also)), "")


def _conditions(package: PackageSnapshot) -> Table:
    rows = tuple(
        (
            Cell(each.type),
            Cell(each.status, _TRUTH.get(each.status, Tone.WARNING)),
            Cell(each.reason),
            Cell(each.message),
            Cell(format_time(each.last_transition)),
        )
        for each in package.conditions
    )
    return Table("Conditions", ("Type", "Status", "Reason", "Message", "Since"), rows, "No conditions yet.")


def _resources(resources: tuple[ResourceSnapshot, ...]) -> Table:
    rows = tuple(
        (
            Cell(_object(each)),
            Cell(each.health, _HEALTH.get(each.health, Tone.PLAIN)),
            Cell(each.apply, Tone.BAD if each.error else Tone.PLAIN),
            Cell(resource_message(each)),
        )
        for each in resources
    )
    return Table("Objects in the cluster", ("Object", "Health", "Apply", "Message"), rows, "No objects.")


def _object(resource: ResourceSnapshot) -> str:
    place = f"{resource.namespace}/{resource.name}" if resource.namespace else resource.name
    return f"{resource.kind} {place}"


def _drift(package: PackageSnapshot, resources: tuple[ResourceSnapshot, ...]) -> Items:
    """Return the fields that differ from what was applied, with their managers, and the objects that fail to apply."""
    drifted = package.drift or tuple(f"{_object(each)}: {each.drift}" for each in resources if each.drift)
    cells = (*(Cell(each, Tone.WARNING) for each in drifted), *(Cell(each, Tone.BAD) for each in package.failing))
    return Items(cells, "No drift: every object is as it was applied.")


def _hooks(package: PackageSnapshot) -> Table:
    rows = tuple(
        (
            Cell(each.name),
            Cell(str(each.runs)),
            Cell(format_time(each.last_run) if each.last_run is not None else "never"),
            Cell(str(each.waiting or "")),
            Cell(", ".join(each.bindings)),
            Cell(each.last_error, Tone.BAD),
        )
        for each in package.hooks
    )
    headers = ("Hook", "Runs", "Last run", "Waiting events", "Bindings", "Last error")
    return Table("Hooks and their runs", headers, rows, "No hooks.")


def _hook_logs(package: PackageSnapshot, log: LogSnapshot | None) -> tuple[Folded, ...]:
    return tuple(_hook_log(number, hook, log) for number, hook in enumerate(package.hooks))


def _hook_log(number: int, hook: HookSnapshot, log: LogSnapshot | None) -> Folded:
    kept = [line for line in log.lines if line.hook == hook.name] if log is not None else []
    lines = tuple(log_line_text(line) for line in kept[-MOST_HOOK_LINES:])
    title = f"Output of {hook.name}"
    body = Preformatted(title, lines, "No output is kept.", f"hook-{number}-lines")
    return Folded(f"hook-{number}", f"{title} ({counted(len(lines), 'line')})", body)


def _history(history: HistorySnapshot | None) -> Table:
    events = [event for event in history.events if event.decides] if history is not None else []
    rows = tuple(
        (
            Cell(format_time(event.time)),
            Cell(event.machine),
            Cell(event.event),
            Cell(f"{event.before} {ARROW} {event.after}" if event.before != event.after else event.after),
            Cell(event.cause),
        )
        for event in reversed(events[-MOST_EVENTS:])
    )
    headers = ("Time", "Machine", "Event", "Change", "Cause")
    return Table("Decisions, the newest first", headers, rows, "No decisions are kept.")


def _events(events: tuple[ClusterEventSnapshot, ...], problem: str) -> Table:
    rows = tuple(
        (
            Cell(format_time(each.last) if each.last is not None else "unknown"),
            Cell(each.type, Tone.WARNING if each.type == "Warning" else Tone.PLAIN),
            Cell(each.reason),
            Cell(str(each.count)),
            Cell(each.message),
        )
        for each in reversed(events[-RECENT:])
    )
    headers = ("Time", "Type", "Reason", "Count", "Message")
    return Table("Kubernetes Events, the newest first", headers, rows, problem or "No Events.")


def _log(log: LogSnapshot | None) -> Preformatted:
    lines = tuple(map(log_line_text, log.lines[-MOST_LINES:])) if log is not None else ()
    return Preformatted("Log lines of the daemon about this package", lines, "No lines are kept.", "log-lines")
