"""The description of a package: everything about it on one page, like `kubectl describe`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from wharfinger.debug.client.unknown_names import one_package
from wharfinger.debug.encoding.details import events_to_json, resources_to_json
from wharfinger.debug.encoding.package import package_to_json
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.errors import DebugAnswerError
from wharfinger.debug.listing.package_parts import resource_message
from wharfinger.debug.listing.packages import versions_text
from wharfinger.debug.package.events_command import event_lines
from wharfinger.debug.printing.explanation import explanation_lines, since_text
from wharfinger.debug.printing.history import history_lines
from wharfinger.debug.printing.output import render_yaml
from wharfinger.debug.printing.task import doing_text
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_table import layout
from wharfinger.kube.times import format_time
from wharfinger.runtime.inspector import HistorySnapshot, Inspector, PackageSnapshot
from wharfinger.runtime.package_details import ClusterEventSnapshot, ResourceSnapshot
from wharfinger.runtime.scheduler_details import ExplanationSnapshot

RECENT: Final = 10
"""The number of decisions and Events that are shown."""
_LABEL_COLUMNS: Final = 14
_INDENT: Final = "  "


@dataclass(frozen=True, slots=True)
class Description:
    """The parts of the description of a package. ``events_problem`` explains why there are no Events; "" if they were read."""

    package: PackageSnapshot
    explanation: ExplanationSnapshot | None
    resources: tuple[ResourceSnapshot, ...]
    history: HistorySnapshot | None
    events: tuple[ClusterEventSnapshot, ...]
    events_problem: str = ""


async def describe(inspector: Inspector, name: str) -> Description:
    """Collect the parts of a package's description. If the cluster does not answer, only the Events are missing. Raises
    NoSuchPackageError.
    """
    package = await one_package(inspector, name)
    events: tuple[ClusterEventSnapshot, ...] = ()
    problem = ""
    try:
        events = await inspector.events(name) or ()
    except DebugAnswerError as error:
        problem = str(error)
    history = await inspector.history(name)
    return Description(
        package, await inspector.why(name), await inspector.resources(name) or (), history, events, problem
    )


def description_to_json(description: Description) -> JsonObject:
    """Return a description as JSON: the package as in a dump, and its other parts."""
    explanation, history = description.explanation, description.history
    document: JsonObject = {
        "package": package_to_json(description.package),
        **resources_to_json(description.resources),
        **events_to_json(description.events),
    }
    if explanation is not None:
        document["explanation"] = record_to_json(explanation)
    if history is not None:
        document["history"] = record_to_json(history)
    return document


def description_lines(description: Description, now: datetime, columns: int | None, arrow: str) -> Iterator[str]:
    """Yield the lines that describe a package, safe to print on a terminal. Ages are relative to ``now``."""
    package = description.package
    yield from _head(package, arrow)
    yield from _section("What to do", _explained(description.explanation, now))
    yield from _section("Conditions", _conditions(package, now, columns))
    yield from _section("Settings", render_yaml(package.settings).splitlines() if package.settings else ())
    yield from _section("Resources", _resources(description.resources, columns))
    yield from _section("Hooks", _hooks(package, columns))
    yield from _section("Warnings", [printable(each) for each in package.warnings])
    yield from _section("Drift", [printable(each) for each in package.drift])
    yield from _section("Failing", [printable(each) for each in package.failing])
    yield from _section("Recent decisions", _recent(description.history, columns))
    events = event_lines(description.events[-RECENT:], columns)
    problem = [printable(description.events_problem)] if description.events_problem else []
    yield from _section("Events", problem or events or ["none"])


def _head(package: PackageSnapshot, arrow: str) -> Iterator[str]:
    digest = package.installed_digest or package.digest
    facts = (
        ("Name", package.name),
        ("Kind", package.kind),
        ("Namespace", package.namespace),
        ("Labels", ", ".join(f"{key}={value}" for key, value in sorted(package.labels.items()))),
        ("Package", package.package),
        ("Version", versions_text(package, arrow)),
        ("Digest", digest),
        ("Revision", str(package.release_revision or "")),
        ("Update", package.update),
        ("State", package.state),
        ("Message", package.message),
        ("Suspended", "yes" if package.suspended else ""),
        ("Maintenance", package.maintenance),
        ("Doing", doing_text(package.queue)),
        ("URLs", ", ".join(package.urls)),
    )
    for label, value in facts:
        if value:
            yield printable(f"{label + ':':<{_LABEL_COLUMNS}}{value}")


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{title}:"
        yield from (f"{_INDENT}{line}" for line in lines)


def _explained(explanation: ExplanationSnapshot | None, now: datetime) -> list[str]:
    return [] if explanation is None else explanation_lines(explanation, now)


def _conditions(package: PackageSnapshot, now: datetime, columns: int | None) -> list[str]:
    rows = [
        (each.type, each.status, each.reason, since_text(each.last_transition, now), each.message)
        for each in package.conditions
    ]
    return layout(("TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"), rows, _inner(columns)) if rows else []


def _resources(resources: Sequence[ResourceSnapshot], columns: int | None) -> list[str]:
    rows = [
        (each.kind, f"{each.namespace}/{each.name}" if each.namespace else each.name, each.health, _about(each))
        for each in resources
    ]
    return layout(("KIND", "NAME", "HEALTH", "MESSAGE"), rows, _inner(columns)) if rows else []


def _about(resource: ResourceSnapshot) -> str:
    drift = f"drift: {resource.drift}" if resource.drift else ""
    return "; ".join(text for text in (resource_message(resource), drift) if text)


def _hooks(package: PackageSnapshot, columns: int | None) -> list[str]:
    rows = [
        (
            each.name,
            str(each.runs),
            format_time(each.last_run) if each.last_run is not None else "never",
            ", ".join(each.bindings),
            each.last_error,
        )
        for each in package.hooks
    ]
    return layout(("HOOK", "RUNS", "LAST-RUN", "BINDINGS", "LAST-ERROR"), rows, _inner(columns)) if rows else []


def _recent(history: HistorySnapshot | None, columns: int | None) -> list[str]:
    if history is None:
        return []
    decided = tuple(event for event in history.events if event.decides)[-RECENT:]
    return history_lines(HistorySnapshot(history.name, decided), _inner(columns)) if decided else []


def _inner(columns: int | None) -> int | None:
    return None if columns is None else columns - len(_INDENT)
