"""The routes about the daemon, its packages, queues and scheduler, and about what a package would apply.

All answers are redacted (see :mod:`wharfinger.debug.printing.redacting`), with one explicit exception: ``?show-secrets=true``
returns a rendered manifest as it would be applied. It does so only if the kernel reports that the process at the other end of the
socket runs as root or as the daemon's user. The daemon logs which user and process have seen the secrets.
"""

import os
from functools import partial
from typing import Final

import trio

from wharfinger.debug.addresses import (
    ELSEWHERE,
    GLOBAL_DUMP,
    HISTORY,
    HOOK_METRICS,
    HOOKS,
    MAX_SETTINGS,
    MAX_SETTINGS_VERSION,
    MAX_SHOWN,
    MEMORY,
    METRICS,
    NO_CHART,
    NO_PACKAGE,
    RENDER,
    RENDER_FAILED,
    REQUIREMENTS,
    SETTINGS_VERSION,
    SHOW_SECRETS,
    VALIDATE,
    WHY,
    read_settings_version,
)
from wharfinger.debug.encoding.encoding import answer_to_json, pools_to_json, queues_to_json, repositories_to_json
from wharfinger.debug.encoding.node import node_to_json, nodes_to_json
from wharfinger.debug.encoding.package import package_to_json, packages_to_json
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.encoding.statistics import statistics_to_json
from wharfinger.debug.printing.output import MEDIA_TYPES
from wharfinger.debug.printing.redacting import (
    redact_answer,
    redact_daemon,
    redact_explanation,
    redact_history,
    redact_node,
    redact_package,
    redact_pool,
    redact_queue,
    redact_repository,
    secrets_in,
    secrets_of,
)
from wharfinger.debug.server.answers import Route, document_answer, text_answer
from wharfinger.debug.server.manifests import redacted_manifest
from wharfinger.formats.errors import FormatError
from wharfinger.formats.exposition import CONTENT_TYPE
from wharfinger.formats.json.value import as_object, decode_json
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.httpd.messages import Request, Response
from wharfinger.httpd.peer import Peer
from wharfinger.kube.times import parse_time
from wharfinger.runtime.inspector import Inspector

GLOBAL: Final = "global"
"""The name of the package of global hooks."""


async def _healthz(_inspector: Inspector, _request: Request) -> Response:
    return text_answer(200, "ok")


async def _livez(inspector: Inspector, _request: Request) -> Response:
    """Return 503 if a watch hangs, because only a restart of the daemon helps then. That the API server is unreachable does not
    cause a 503, because a restart would not help.
    """
    stale = (await inspector.daemon()).stale_watches
    return text_answer(503, "\n".join(stale)) if stale else text_answer(200, "ok")


async def _readyz(inspector: Inspector, _request: Request) -> Response:
    """Return the verdict in the first line, and the leader, if it is known, in the second."""
    daemon = redact_daemon(await inspector.daemon())
    leader = f"\nleader: {daemon.leader.leader}" if daemon.leader.leader else ""
    if daemon.ready:
        return text_answer(200, f"ready{leader}")
    if daemon.draining:
        return text_answer(503, f"not ready: shutting down{leader}")
    return text_answer(503, (f"not ready: {daemon.standby}" if daemon.standby else "not ready: starting") + leader)


async def _daemon(inspector: Inspector, request: Request) -> Response:
    return document_answer(request, record_to_json(redact_daemon(await inspector.daemon())))


async def _statistics(inspector: Inspector, request: Request) -> Response:
    statistics = await inspector.statistics()
    return document_answer(request, statistics_to_json(statistics) if statistics else None)


async def _memory(inspector: Inspector, request: Request) -> Response:
    return document_answer(request, record_to_json(await inspector.memory()))


async def _packages(inspector: Inspector, request: Request) -> Response:
    if "name" not in request.query:
        return document_answer(
            request, packages_to_json(redact_package(package) for package in await inspector.packages())
        )
    package = await inspector.package(request.arg("name"))
    return document_answer(request, package_to_json(redact_package(package)) if package else None)


async def _queues(inspector: Inspector, request: Request) -> Response:
    secrets = secrets_in(await inspector.packages())
    queues = [redact_queue(queue, secrets) for queue in await inspector.queues()]
    if "name" not in request.query:
        return document_answer(request, queues_to_json(queues))
    asked = [queue for queue in queues if queue.name == request.arg("name")]
    return document_answer(request, queues_to_json(asked) if asked else None)


async def _pools(inspector: Inspector, request: Request) -> Response:
    secrets = secrets_in(await inspector.packages())
    pools = [redact_pool(each, secrets) for each in await inspector.pools()]
    if "name" not in request.query:
        return document_answer(request, pools_to_json(pools))
    asked = [pool for pool in pools if pool.name == request.arg("name")]
    return document_answer(request, pools_to_json(asked) if asked else None)


async def _repositories(inspector: Inspector, request: Request) -> Response:
    secrets = secrets_in(await inspector.packages())
    repositories = [redact_repository(each, secrets) for each in await inspector.repositories()]
    if "name" not in request.query:
        return document_answer(request, repositories_to_json(repositories))
    asked = [each for each in repositories if each.name == request.arg("name")]
    return document_answer(request, repositories_to_json(asked) if asked else None)


async def _scheduler(inspector: Inspector, request: Request) -> Response:
    secrets = secrets_in(await inspector.packages())
    nodes = [redact_node(node, secrets) for node in await inspector.scheduler()]
    if "name" not in request.query:
        return document_answer(request, nodes_to_json(nodes))
    asked = next((node for node in nodes if node.name == request.arg("name")), None)
    return document_answer(request, node_to_json(asked) if asked else None)


async def _why(inspector: Inspector, request: Request) -> Response:
    if "package" not in request.query:
        return text_answer(400, "query parameter package: the name of a package is missing")
    at = parse_time(request.arg("at")) if "at" in request.query else None
    if at is None and "at" in request.query:
        return text_answer(400, f"at: {request.arg('at')[:MAX_SHOWN]}: expected a time like 2026-11-21T04:03:00Z")
    explanation = await inspector.why(request.arg("package"), at)
    if explanation is None:
        return document_answer(request, None)
    # The chain of causes leads through other packages; the text about a package may quote a secret that only that package names.
    secrets = secrets_in(await inspector.packages())
    return document_answer(request, record_to_json(redact_explanation(explanation, secrets)))


async def _history(inspector: Inspector, request: Request) -> Response:
    if "package" not in request.query:
        return text_answer(400, "query parameter package: the name of a package is missing")
    history = await inspector.history(request.arg("package"))
    if history is None:
        return document_answer(request, None)
    # Texts were masked when they were recorded; a secret that became known later is masked here.
    secrets = secrets_in(await inspector.packages())
    return document_answer(request, record_to_json(redact_history(history, secrets)))


async def _metrics(inspector: Inspector, request: Request) -> Response:
    hooks = request.arg(HOOKS, "false")
    if hooks not in {"true", "false"}:
        return text_answer(400, f"unknown {HOOKS}: {hooks}; known: false, true")
    return metrics_answer(
        await inspector.metrics() + (await inspector.hook_metrics() if hooks == "true" else ELSEWHERE)
    )


async def _hook_metrics(inspector: Inspector, _request: Request) -> Response:
    return metrics_answer(await inspector.hook_metrics())


def _may_see_secrets(peer: Peer | None) -> bool:
    return peer is not None and peer.uid in {0, os.geteuid()}


async def _requirements(inspector: Inspector, request: Request) -> Response:
    facts = await inspector.requirements()
    return document_answer(request, record_to_json(facts) if facts is not None else None)


async def _global(inspector: Inspector, request: Request) -> Response:
    package = await inspector.package(GLOBAL)
    return document_answer(request, package_to_json(redact_package(package)) if package else None)


async def _render(inspector: Inspector, request: Request) -> Response:
    name = request.path.removeprefix(RENDER)
    show = request.arg(SHOW_SECRETS, "false")
    if show not in {"true", "false"}:
        return text_answer(400, f"unknown {SHOW_SECRETS}: {show}; known: false, true")
    if show == "true" and not _may_see_secrets(request.peer):
        return text_answer(403, f"{SHOW_SECRETS}: only root and the daemon's user may see secrets; leave it out")
    shown_to = f"user {request.peer.uid} (process {request.peer.pid})" if show == "true" and request.peer else ""
    rendered = await inspector.render(name, shown_to=shown_to)
    if rendered is None:
        return text_answer(404, f"{NO_PACKAGE}{name!r}")
    package = await inspector.package(name)
    secrets = secrets_of(package) if package else frozenset[str]()
    if not rendered.has_chart:
        return text_answer(400, NO_CHART)
    if rendered.problem:
        return text_answer(500, RENDER_FAILED + TextRedactor(secrets).redact(rendered.problem))
    if show == "true":
        return Response(200, rendered.manifest.encode("utf-8", "replace"), MEDIA_TYPES["yaml"])
    try:
        shown = await trio.to_thread.run_sync(partial(redacted_manifest, rendered.manifest, secrets))
    except FormatError as error:
        return text_answer(500, f"{RENDER_FAILED}it cannot be redacted: {TextRedactor(secrets).redact(str(error))}")
    return Response(200, shown.encode(), MEDIA_TYPES["yaml"])


async def _validate(inspector: Inspector, request: Request) -> Response:
    name = request.path.removeprefix(VALIDATE)
    written = request.arg(SETTINGS_VERSION, "0")
    version = read_settings_version(written)
    if version is None:
        return text_answer(
            400, f"{SETTINGS_VERSION}: {written[:MAX_SHOWN]}: expected a number up to {MAX_SETTINGS_VERSION}"
        )
    try:
        body = decode_json(request.body or b"{}", max_bytes=MAX_SETTINGS, what="settings")
        settings = as_object(body, "settings")
    except FormatError as error:
        return text_answer(400, str(error))
    answer = await inspector.validate(name, settings, version)
    if answer is None:
        return text_answer(404, f"{NO_PACKAGE}{name!r}")
    package = await inspector.package(name)
    secrets = secrets_of(package) if package else frozenset[str]()
    return document_answer(request, answer_to_json(redact_answer(answer, secrets)))


DOCUMENT_ROUTES: Final[dict[str, Route]] = {
    "/healthz": Route(_healthz),
    "/livez": Route(_livez),
    "/readyz": Route(_readyz),
    METRICS: Route(_metrics, frozenset({HOOKS})),
    HOOK_METRICS: Route(_hook_metrics),
    "/api/v1/daemon": Route(_daemon, frozenset({"output"}), watch=True),
    "/api/v1/statistics": Route(_statistics, frozenset({"output"}), watch=True),
    MEMORY: Route(_memory, frozenset({"output"})),
    "/api/v1/packages/dump": Route(_packages, frozenset({"name", "output"}), watch=True),
    "/api/v1/queues/dump": Route(_queues, frozenset({"name", "output"}), watch=True),
    "/api/v1/pools/dump": Route(_pools, frozenset({"name", "output"}), watch=True),
    "/api/v1/repositories/dump": Route(_repositories, frozenset({"name", "output"}), watch=True),
    "/api/v1/scheduler/dump": Route(_scheduler, frozenset({"name", "output"}), watch=True),
    GLOBAL_DUMP: Route(_global, frozenset({"output"}), watch=True),
    REQUIREMENTS: Route(_requirements, frozenset({"output"}), watch=True),
    WHY: Route(_why, frozenset({"package", "at", "output"}), watch=True),
    HISTORY: Route(_history, frozenset({"package", "output"})),
    f"{RENDER}{{name}}": Route(_render, frozenset({SHOW_SECRETS})),
    f"{VALIDATE}{{name}}": Route(_validate, frozenset({SETTINGS_VERSION, "output"}), post=True),
}


def metrics_answer(text: str) -> Response:
    """Return metrics as a response for a scraper."""
    return Response(200, text.encode("utf-8", "replace"), CONTENT_TYPE)
