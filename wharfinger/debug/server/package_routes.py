"""The routes about details of one package: its objects, Events, log, hook snapshots, and what the next apply would change; and
the route about the trio tasks of the daemon.

Their answers are redacted like all others, and bounded: the runtime limits the Events and log lines of a package.
"""

from functools import partial
from typing import Final

import trio

from wharfinger.debug.addresses import (
    AFTER,
    DIFFERENCE,
    EVENTS,
    LOGS,
    MAX_SHOWN,
    NO_PACKAGE,
    RESOURCES,
    SNAPSHOTS,
    TASKS,
    UNAVAILABLE,
    read_number,
)
from wharfinger.debug.encoding.details import (
    events_to_json,
    resources_to_json,
    snapshots_to_json,
    tasks_to_json,
)
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.printing.redacting import (
    redact_difference,
    redact_events,
    redact_log,
    redact_resource,
    redact_snapshots,
    redact_tasks,
    secrets_in,
    secrets_of,
)
from wharfinger.debug.server.answers import Route, document_answer, text_answer
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.httpd.messages import Request, Response
from wharfinger.runtime.inspector import Inspector
from wharfinger.runtime.package_details import DetailsUnavailableError

_MISSING: Final = "query parameter package: the name of a package is missing"


async def _secrets(inspector: Inspector, name: str) -> frozenset[str]:
    """Return the secrets of a package that the daemon knows; none for a package that is gone."""
    package = await inspector.package(name)
    return secrets_of(package) if package is not None else frozenset()


async def _resources(inspector: Inspector, request: Request) -> Response:
    if "package" not in request.query:
        return text_answer(400, _MISSING)
    name = request.arg("package")
    found = await inspector.resources(name)
    if found is None:
        return document_answer(request, None)
    secrets = await _secrets(inspector, name)
    return document_answer(request, resources_to_json(redact_resource(each, secrets) for each in found))


async def _events(inspector: Inspector, request: Request) -> Response:
    name = request.arg("package") if "package" in request.query else None
    try:
        found = await inspector.events(name)
    except DetailsUnavailableError as error:
        known = frozenset[str]() if name is None else await _secrets(inspector, name)
        return text_answer(503, f"{UNAVAILABLE}{TextRedactor(known).redact(str(error))}")
    if found is None:
        return document_answer(request, None)
    secrets = secrets_in(await inspector.packages()) if name is None else await _secrets(inspector, name)
    return document_answer(request, events_to_json(redact_events(found, secrets)))


async def _logs(inspector: Inspector, request: Request) -> Response:
    if "package" not in request.query:
        return text_answer(400, _MISSING)
    name, written = request.arg("package"), request.arg(AFTER, "0")
    after = read_number(written)
    if after is None:
        return text_answer(400, f"{AFTER}: {written[:MAX_SHOWN]}: expected the number of a line")
    found = await inspector.logs(name, after)
    if found is None:
        return document_answer(request, None)
    return document_answer(request, record_to_json(redact_log(found, await _secrets(inspector, name))))


async def _difference(inspector: Inspector, request: Request) -> Response:
    if "package" not in request.query:
        return text_answer(400, _MISSING)
    name = request.arg("package")
    found = await inspector.difference(name)
    if found is None:
        return document_answer(request, None)
    return document_answer(request, record_to_json(redact_difference(found, await _secrets(inspector, name))))


async def _snapshots(inspector: Inspector, request: Request) -> Response:
    name = request.path.removeprefix(SNAPSHOTS)
    if not name:
        return text_answer(400, "expected the name of a package at the end of the path")
    found = await inspector.hook_snapshots(name)
    if found is None:
        return text_answer(404, f"{NO_PACKAGE}{name!r}")
    # A snapshot may have thousands of objects, so they are redacted off the event loop.
    shown = await trio.to_thread.run_sync(partial(redact_snapshots, found, await _secrets(inspector, name)))
    return document_answer(request, snapshots_to_json(shown))


async def _tasks(inspector: Inspector, request: Request) -> Response:
    secrets = secrets_in(await inspector.packages())
    return document_answer(request, tasks_to_json(redact_tasks(await inspector.tasks(), secrets)))


PACKAGE_ROUTES: Final[dict[str, Route]] = {
    RESOURCES: Route(_resources, frozenset({"package", "output"}), watch=True),
    EVENTS: Route(_events, frozenset({"package", "output"}), watch=True),
    LOGS: Route(_logs, frozenset({"package", AFTER, "output"}), watch=True),
    DIFFERENCE: Route(_difference, frozenset({"package", "output"})),
    f"{SNAPSHOTS}{{name}}": Route(_snapshots, frozenset({"output"})),
    TASKS: Route(_tasks, frozenset({"output"})),
}
