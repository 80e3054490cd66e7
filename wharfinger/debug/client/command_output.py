"""The output of the commands: tables and documents from the answers of any Inspector.

Most of the printed text comes from packages and the cluster and is not trusted: control sequences that a terminal would obey
are escaped.
"""

from dataclasses import replace
from datetime import datetime
from typing import Final, assert_never

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.unknown_names import NoSuchPackageError, no_such_package, one_package, package_hint
from wharfinger.debug.encoding.encoding import answer_to_json, queues_to_json
from wharfinger.debug.encoding.node import node_to_json, nodes_to_json
from wharfinger.debug.encoding.package import package_to_json, packages_to_json
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.errors import DebugError
from wharfinger.debug.fields import duration
from wharfinger.debug.printing.explanation import explanation_lines
from wharfinger.debug.printing.history import history_lines
from wharfinger.debug.printing.node import node_lines
from wharfinger.debug.printing.output import OUTPUT_FORMATS, OutputFormat, render
from wharfinger.debug.printing.task import task_state_text, task_why_text
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_table import layout
from wharfinger.kube.times import format_exact_time
from wharfinger.runtime.inspector import (
    HistorySnapshot,
    Inspector,
    InvalidSettings,
    QueueSnapshot,
    TaskSnapshot,
    UnknownSettings,
    ValidSettings,
)
from wharfinger.runtime.scheduler_details import ExplanationSnapshot

_QUEUES_HEADER: Final = ("QUEUE", "INDEX", "LANE", "TASK", "ATTEMPT", "ENQUEUED", "STATE", "WHY")
PROMETHEUS: Final = "prometheus"
EXIT_UNKNOWN: Final = 3
EXIT_KEPT: Final = 3


class RenderFailedError(DebugError):
    """A package cannot be rendered in its present state."""


async def dump_text(inspector: Inspector, name: str | None, output: OutputFormat) -> str:
    """Return the output of `dump`: all packages, or one. Raises NoSuchPackageError."""
    if name is None:
        return render(packages_to_json(await inspector.packages()), output)
    return render(package_to_json(await one_package(inspector, name)), output)


async def queues_text(inspector: Inspector, name: str | None, output: str, columns: int | None) -> str:
    """Return the output of `queues dump`: all queues, or one; "" instead of an empty table. Raises NoSuchPackageError."""
    queues = await inspector.queues()
    if name is not None:
        queues = tuple(queue for queue in queues if queue.name == name)
        if not queues:
            hint = await package_hint(inspector, name) or "`wharfinger queues dump` shows all"
            raise NoSuchPackageError(f"no queue named {name!r}; {hint}")
    if output in OUTPUT_FORMATS:
        return render(queues_to_json(queues), output)
    rows = [_task_row(queue, task) for queue in queues for task in queue.tasks]
    return "".join(f"{line}\n" for line in layout(_QUEUES_HEADER, rows, columns)) if rows else ""


async def statistics_text(inspector: Inspector, output: str) -> str:
    """Return the output of `statistics`; the text is empty while the daemon has no counters. ``prometheus`` is the format for
    scrapers."""
    from wharfinger.debug.encoding.statistics import statistics_to_json  # noqa: PLC0415 - only this command needs them
    from wharfinger.debug.printing.statistics import statistics_lines  # noqa: PLC0415

    if output == PROMETHEUS:
        return await inspector.metrics() + await inspector.hook_metrics()
    statistics = await inspector.statistics()
    if output in OUTPUT_FORMATS:
        return render(statistics_to_json(statistics) if statistics else None, output)
    return "".join(f"{line}\n" for line in statistics_lines(statistics)) if statistics else ""


async def scheduler_text(inspector: Inspector, name: str | None, output: str, columns: int | None) -> str:
    """Return the output of `scheduler dump`: all nodes, or one; "" instead of an empty table. Raises NoSuchPackageError."""
    nodes = await inspector.scheduler()
    if name is not None:
        nodes = tuple(node for node in nodes if node.name == name)
        if not nodes:
            raise await _no_such_node(inspector, name)
    if output in OUTPUT_FORMATS:
        return render(nodes_to_json(nodes) if name is None else node_to_json(nodes[0]), output)
    return "".join(f"{line}\n" for line in node_lines(nodes, columns))


async def why_text(
    inspector: Inspector, name: str, output: str, now: datetime, at: datetime | None = None
) -> tuple[str, int]:
    """Return the output of `why` and its exit code, for the state at the time ``at``, or for the present state. Ages are counted
    back from that time, or from ``now``. Raises NoSuchPackageError.
    """
    explanation = await inspector.why(name, at)
    if explanation is None:
        if at is not None:
            raise NoSuchPackageError(
                f"no event of {name!r} before {format_exact_time(at)} is kept; `wharfinger history {name}` shows the kept "
                "events, a recording may reach further back (--recording DIR), and `wharfinger get packages` lists all names"
            )
        raise await no_such_package(inspector, name)
    return format_explanation(explanation, output, at or now)


def format_explanation(explanation: ExplanationSnapshot, output: str, now: datetime) -> tuple[str, int]:
    """Return the printed form of an explanation, and the exit code."""
    code = 0 if explanation.ready else EXIT_KEPT
    if output in OUTPUT_FORMATS:
        return render(record_to_json(explanation), output), code
    return "".join(f"{line}\n" for line in explanation_lines(explanation, now)), code


async def history_text(inspector: Inspector, name: str, output: str, columns: int | None, *, everything: bool) -> str:
    """Return the output of `history`. Raises NoSuchPackageError if nothing is known of the package."""
    history = await inspector.history(name)
    if history is None:
        raise await no_such_package(inspector, name)
    return format_history(history, output, columns, everything=everything)


def format_history(history: HistorySnapshot, output: str, columns: int | None, *, everything: bool) -> str:
    """Return the printed form of a history."""
    if not everything:
        history = replace(history, events=tuple(event for event in history.events if event.decides))
    if output in OUTPUT_FORMATS:
        return render(record_to_json(history), output)
    return "".join(f"{line}\n" for line in history_lines(history, columns))


async def render_text(client: DebugClient, name: str, *, show_secrets: bool) -> str:
    """Return the output of `render`. Raises NoSuchPackageError and RenderFailedError."""
    rendered = await client.render(name, show_secrets=show_secrets)
    if rendered is None:
        raise await no_such_package(client, name)
    if not rendered.has_chart:
        raise RenderFailedError(f"package {name!r} has no Helm chart: there is nothing to render")
    if rendered.problem:
        raise RenderFailedError(f"package {name!r} cannot be rendered: {rendered.problem}")
    return rendered.manifest


async def validate_text(
    inspector: Inspector, name: str, settings: JsonObject, version: int, output: str
) -> tuple[str, int]:
    """Return the output of `validate` and its exit code. Raises NoSuchPackageError."""
    answer = await inspector.validate(name, settings, version)
    if answer is None:
        raise await no_such_package(inspector, name)
    match answer:
        case ValidSettings(package, warnings):
            code, lines, verdict = 0, [f"warning: {each}" for each in warnings], f"valid for version {package}"
        case InvalidSettings(package, problems, warnings):
            lines = [*(f"error: {each}" for each in problems), *(f"warning: {each}" for each in warnings)]
            code, verdict = 1, f"not valid for version {package}"
        case UnknownSettings(why):
            code, lines, verdict = EXIT_UNKNOWN, [], f"not known: {why}"
        case _:
            assert_never(answer)
    if output in OUTPUT_FORMATS:
        return render(answer_to_json(answer), output), code
    return "".join(f"{printable(line)}\n" for line in [*lines, f"{name}: {verdict}"]), code


async def _no_such_node(inspector: Inspector, name: str) -> NoSuchPackageError:
    """Return the error for a missing node.

    A package is in the scheduler only from the moment it is loaded until it is removed. If the daemon knows the package, but the
    scheduler does not, the error reports the state of the package.
    """
    package = await inspector.package(name)
    if package is not None:
        how = f"{package.state}: {package.message}" if package.message else package.state
        return NoSuchPackageError(f"package {name!r} is not in the scheduler ({how}); `wharfinger why {name}` says why")
    hint = await package_hint(inspector, name) or "`wharfinger scheduler dump` shows all that are loaded"
    return NoSuchPackageError(f"no package named {name!r} in the scheduler; {hint}")


def _task_row(queue: QueueSnapshot, task: TaskSnapshot) -> tuple[str, ...]:
    return (
        queue.name,
        str(task.index),
        task.lane,
        task.name,
        str(task.attempt),
        duration(task.enqueued_s_ago),
        task_state_text(task),
        task_why_text(task),
    )
