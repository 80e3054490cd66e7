"""The paths and formats of the debug servers of Deckhouse, addon-operator and shell-operator, so that their users' scripts keep
working.

Deckhouse's paths without a version (``/packages/…``) return YAML. In the paths that have a ``{format}`` in PEER_ROUTES, an
extension selects the format: ``.json``, ``.yaml`` or ``.text``. Without an extension they return text; a value without a text
form is then written as JSON. Any other path is refused, as everywhere on the socket.

Those programs have one main queue, but this daemon has a queue for each package. So ``main`` returns the tasks of the main lanes
of all packages, and each other lane is returned as the queue ``<package>/<lane>``. Nothing can be changed over the socket, so
there is no ``/config/set``.
"""

import re
from collections.abc import Iterable
from functools import partial
from typing import Final

import msgspec
import trio

from wharfinger.debug.addresses import NO_PACKAGE
from wharfinger.debug.encoding.details import snapshots_to_json
from wharfinger.debug.printing.output import MEDIA_TYPES, OutputFormat, render
from wharfinger.debug.printing.redacting import redact_package, redact_queue, redact_snapshots, secrets_in, secrets_of
from wharfinger.debug.server.answers import Route, text_answer
from wharfinger.debug.server.document_routes import DOCUMENT_ROUTES, GLOBAL
from wharfinger.debug.server.package_routes import PACKAGE_ROUTES
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.httpd.messages import Request, Response
from wharfinger.runtime.inspector import Inspector, PackageSnapshot, TaskSnapshot

_V1: Final = "/api/v1"
_MAIN: Final = "main"
_OUTPUT: Final = "output"
_SHOW_EMPTY: Final = "showEmpty"
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})


def peer_route(path: str) -> Route | None:
    """Return the route whose pattern in PEER_ROUTES, such as ``/module/{name}/render``, matches a path; None if there is none."""
    for pattern, route in _PATTERNS:
        if pattern.fullmatch(path):
            return route
    return None


def _parts(request: Request) -> tuple[str, str]:
    """Return the package's name in the path of a request ("" if there is none), and the format that the end of the path
    requests: ``json``, ``yaml`` or ``text``.
    """
    path, dot, form = request.path.rpartition(".")
    if not dot or form not in {"json", "yaml", "text"}:
        path, form = request.path, "text"
    parts = path.split("/")
    return (parts[2] if len(parts) > 3 else ""), form


def _document(form: str, value: JsonValue, text: str | None = None) -> Response:
    if form == "text":
        return text_answer(200, (render(value, "json") if text is None else text).rstrip("\n"))
    output: OutputFormat = "yaml" if form == "yaml" else "json"
    return Response(200, render(value, output).encode(), MEDIA_TYPES[output])


async def _alive(_inspector: Inspector, _request: Request) -> Response:
    return text_answer(200, "debug endpoint is alive")


async def _old(path: str, inspector: Inspector, request: Request) -> Response:
    """Answer a request for one of Deckhouse's paths that contain no API version. The default format of the answer is YAML."""
    route = DOCUMENT_ROUTES.get(path) or PACKAGE_ROUTES[path]
    prefix, _, _ = path.partition("{")
    query = {_OUTPUT: ("yaml",), **request.query} if _OUTPUT in route.parameters else request.query
    moved = prefix if prefix == path else prefix + request.path.rpartition("/")[2]
    return await route.answer(inspector, msgspec.structs.replace(request, path=moved, query=query))


# --- queues ------------------------------------------------------------------------------------------------------------------


async def _queues(inspector: Inspector) -> dict[str, list[str]]:
    """Return the tasks of each queue as one line each; ``main`` comes first."""
    secrets = secrets_in(await inspector.packages())
    found: dict[str, list[str]] = {_MAIN: []}
    for queue in await inspector.queues():
        for task in redact_queue(queue, secrets).tasks:
            name = _MAIN if task.lane == _MAIN else f"{queue.name}/{task.lane}"
            found.setdefault(name, []).append(f"{queue.name}: {_described(task)}")
        if not queue.tasks:
            found.setdefault(f"{queue.name}/{_MAIN}", [])
    return found


def _described(task: TaskSnapshot) -> str:
    return f"{task.name}: failed {counted(task.attempt, 'time')}: {task.error}" if task.error else task.name


def _queue_document(name: str, tasks: list[str]) -> JsonObject:
    status: JsonObject = {"status": "run first task"} if tasks else {}
    listed: list[JsonValue] = [{"index": index, "description": text} for index, text in enumerate(tasks, 1)]
    return {"name": name, "tasksCount": len(tasks), **status, "tasks": listed}


async def _main_queue(inspector: Inspector, request: Request) -> Response:
    tasks = (await _queues(inspector))[_MAIN]
    return _document(_parts(request)[1], _queue_document(_MAIN, tasks), "\n".join(_queue_lines(_MAIN, tasks)))


async def _queue_list(inspector: Inspector, request: Request) -> Response:
    shows_empty = request.arg(_SHOW_EMPTY, "false") in _TRUE
    queues = await _queues(inspector)
    active = {
        name: tasks for name, tasks in sorted(queues.items(), key=lambda each: (each[0] != _MAIN, each[0])) if tasks
    }
    empty = sorted((name for name, tasks in queues.items() if not tasks), key=lambda name: (name != _MAIN, name))
    total, mains = sum(map(len, active.values())), len(queues[_MAIN])
    others: JsonObject = {
        "active": len(active.keys() - {_MAIN}),
        "empty": len([name for name in empty if name != _MAIN]),
        "tasks": total - mains,
    }
    document: JsonObject = {
        "active": [_queue_document(name, tasks) for name, tasks in active.items()],
        **(
            {"empty": [{"name": name, "tasksCount": 0} for name in empty]}
            if shows_empty and queues.keys() != {_MAIN}
            else {}
        ),
        "summary": {"mainQueueTasks": mains, "otherQueues": others, "totalTasks": total},
    }
    lines = [line for name, tasks in active.items() for line in (*_queue_lines(name, tasks), "")]
    if shows_empty and empty:
        lines += [f"Empty queues ({len(empty)}):", *(f"- {name}" for name in empty), ""]
    counts = f"{others['active']} active, {others['empty']} empty"
    lines += [
        "Summary:",
        f"- 'main' queue: {_tasks(mains) if mains else 'empty'}.",
        f"- {counted(len(queues) - 1, 'other queue')} ({counts}): {_tasks(total - mains)}.",
        f"- total {_tasks(total)} to handle." if total else "- no tasks to handle.",
    ]
    return _document(_parts(request)[1], document, "\n".join(map(printable, lines)))


def _queue_lines(name: str, tasks: list[str]) -> Iterable[str]:
    if not tasks:
        return [f"Queue '{name}': empty"]
    return [
        f"Queue '{name}': length {len(tasks)}, status: 'run first task'",
        "",
        *(f"{index:2}. {printable(text)}" for index, text in enumerate(tasks, 1)),
    ]


def _tasks(number: int) -> str:
    return counted(number, "task")


# --- modules, global values and hooks ----------------------------------------------------------------------------------------


async def _module(inspector: Inspector, request: Request) -> tuple[PackageSnapshot | None, str]:
    name, form = _parts(request)
    package = await inspector.package(name or GLOBAL)
    return (redact_package(package) if package is not None else None), form


def _no_module(request: Request) -> Response:
    return text_answer(404, f"{NO_PACKAGE}{_parts(request)[0] or GLOBAL!r}")


async def _modules(inspector: Inspector, request: Request) -> Response:
    on = {node.name for node in await inspector.scheduler() if node.decision == "Enable"}
    packages = await inspector.packages()
    names = [each.name for each in packages if each.kind == "Module" and each.name in on and each.name != GLOBAL]
    return _document(_parts(request)[1], {"enabledModules": list(names)})


async def _section(kind: str, inspector: Inspector, request: Request) -> Response:
    """Return the values or the settings of a module. With ``global=true``, return an object with the global values or settings
    in one field, and those of the module in another.
    """
    package, form = await _module(inspector, request)
    if package is None:
        return _no_module(request)
    section = package.values if kind == "values" else package.settings
    if request.arg("global", "false") not in _TRUE:
        return _document(form, section)
    found = await inspector.package(GLOBAL)
    shared = redact_package(found) if found is not None else None
    of_all = {} if shared is None else shared.values if kind == "values" else shared.settings
    return _document(form, {"global": of_all, _camel(package.name): section})


def _camel(name: str) -> str:
    """Return the key of a module's values: ``ingressNginx`` for ``ingress-nginx``."""
    first, *rest = name.split("-")
    return first + "".join(part.capitalize() for part in rest)


async def _snapshots(inspector: Inspector, request: Request) -> Response:
    """Return the snapshots of the hooks of a module, or of the global hooks."""
    name = _parts(request)[0] or GLOBAL
    found, package = await inspector.hook_snapshots(name), await inspector.package(name)
    if found is None or package is None:
        return _no_module(request)
    # A snapshot may have thousands of objects, so they are redacted off the event loop.
    shown = await trio.to_thread.run_sync(partial(redact_snapshots, found, secrets_of(package)))
    return _document(_parts(request)[1], snapshots_to_json(shown))


async def _render(inspector: Inspector, request: Request) -> Response:
    name = _parts(request)[0]
    path = "/api/v1/packages/render/"
    route = DOCUMENT_ROUTES[f"{path}{{name}}"]
    return await route.answer(inspector, msgspec.structs.replace(request, path=path + name, query={}))


async def _hooks(inspector: Inspector, request: Request) -> Response:
    names: list[JsonValue] = [hook.name for package in await inspector.packages() for hook in package.hooks]
    return _document(_parts(request)[1], names)


async def _global_hooks(inspector: Inspector, request: Request) -> Response:
    found = await inspector.package(GLOBAL)
    return _document(_parts(request)[1], {"globalHooks": [hook.name for hook in found.hooks] if found else []})


async def _converge(inspector: Inspector, request: Request) -> Response:
    """Return whether the daemon is ready, and the number of tasks that are left, in the words of addon-operator."""
    is_ready = (await inspector.daemon()).ready
    tasks = sum(len(queue.tasks) for queue in await inspector.queues())
    started = "STARTUP_CONVERGE_DONE" if is_ready else "STARTUP_CONVERGE_IN_PROGRESS"
    later = "CONVERGE_IN_PROGRESS" if tasks else "CONVERGE_WAIT_TASK"
    if request.arg(_OUTPUT) == "json":
        return _document("json", {started: tasks if not is_ready else True, later: tasks if tasks else True})
    counted = f": {_tasks(tasks)}"
    lines = [started + ("" if is_ready else counted), *([later + (counted if tasks else "")] if is_ready else [])]
    return text_answer(200, "\n".join(lines))


_FORMS: Final = "{format}"
PEER_ROUTES: Final[dict[str, Route]] = {
    "/": Route(_alive),
    "/packages/dump": Route(partial(_old, f"{_V1}/packages/dump"), frozenset({"name"})),
    "/packages/global/dump": Route(partial(_old, f"{_V1}/packages/global/dump")),
    "/packages/queues/dump": Route(partial(_old, f"{_V1}/queues/dump"), frozenset({"name"})),
    "/packages/scheduler/dump": Route(partial(_old, f"{_V1}/scheduler/dump"), frozenset({"name"})),
    "/packages/render/{name}": Route(partial(_old, f"{_V1}/packages/render/{{name}}")),
    "/packages/snapshots/{name}": Route(partial(_old, f"{_V1}/packages/snapshots/{{name}}")),
    f"/queue/main{_FORMS}": Route(_main_queue),
    f"/queue/list{_FORMS}": Route(_queue_list, frozenset({_SHOW_EMPTY})),
    f"/hook/list{_FORMS}": Route(_hooks),
    f"/global/list{_FORMS}": Route(_global_hooks),
    f"/global/values{_FORMS}": Route(partial(_section, "values")),
    f"/global/config{_FORMS}": Route(partial(_section, "config")),
    f"/global/snapshots{_FORMS}": Route(_snapshots),
    f"/module/list{_FORMS}": Route(_modules),
    f"/module/{{name}}/values{_FORMS}": Route(partial(_section, "values"), frozenset({"global"})),
    f"/module/{{name}}/config{_FORMS}": Route(partial(_section, "config"), frozenset({"global"})),
    f"/module/{{name}}/snapshots{_FORMS}": Route(_snapshots),
    "/module/{name}/render": Route(_render),
    "/status/converge": Route(_converge, frozenset({_OUTPUT})),
}
"""The routes by path. In a path, ``{format}`` stands for ``.json``, ``.yaml``, ``.text`` or nothing."""

_PATTERNS: Final = [
    (
        re.compile(re.escape(path).replace(r"\{name\}", "[^/]+").replace(r"\{format\}", r"(?:\.(?:json|yaml|text))?")),
        route,
    )
    for path, route in PEER_ROUTES.items()
    if "{" in path
]
