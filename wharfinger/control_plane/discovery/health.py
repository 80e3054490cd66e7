"""The endpoints ``/healthz``, ``/livez`` and ``/readyz``.

Each endpoint reports the checks that a kube-apiserver has, by the same names. Nothing is really checked: all checks pass as long
as the server answers.
"""

from collections.abc import Sequence
from typing import Final

from wharfinger.httpd.messages import Request, Response

PLAIN: Final = "text/plain; charset=utf-8"
_HOOKS: Final = """
    start-apiserver-admission-initializer generic-apiserver-start-informers priority-and-fairness-config-consumer
    priority-and-fairness-filter storage-object-count-tracker-hook start-apiextensions-informers
    start-apiextensions-controllers crd-informer-synced start-system-namespaces-controller
    peer-endpoint-reconciler-controller start-cluster-authentication-info-controller
    start-kube-apiserver-identity-lease-controller start-kube-apiserver-identity-lease-garbage-collector storage-readiness
    start-legacy-token-tracking-controller start-service-ip-repair-controllers rbac/bootstrap-roles
    scheduling/bootstrap-system-priority-classes priority-and-fairness-config-producer bootstrap-controller
    start-kubernetes-service-cidr-controller start-kube-aggregator-informers apiservice-status-local-available-controller
    apiservice-status-remote-available-controller apiservice-registration-controller apiservice-discovery-controller
    kube-apiserver-autoregistration
"""
_COMMON: Final = (
    *(f"poststarthook/{name}" for name in _HOOKS.split()),
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
_ALIVE: Final = ("ping", "log", "loopback-serving-certificate", "etcd", *_COMMON)
CHECKS: Final[dict[str, tuple[str, ...]]] = {
    "healthz": _ALIVE,
    "livez": _ALIVE,
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_COMMON, "shutdown"),
}
"""The checks of each endpoint, in the order in which they are reported."""


def health(endpoint: str, check: str, request: Request) -> Response | None:
    """Return the answer of an endpoint, or of one of its checks; None if the endpoint has no such check."""
    if check:
        return Response(200, b"ok", PLAIN) if check in CHECKS[endpoint] else None
    headers = (("x-content-type-options", "nosniff"),)
    if "verbose" not in request.query:
        return Response(200, b"ok", PLAIN, headers)
    return Response(200, _verbose(endpoint, request.query.get("exclude", ())).encode(), PLAIN, headers)


def _verbose(endpoint: str, excluded: Sequence[str]) -> str:
    checks = CHECKS[endpoint]
    lines = [f"[+]{name} {'excluded: ok' if name in excluded else 'ok'}" for name in checks]
    if unknown := [f'"{name}"' for name in sorted(set(excluded)) if name not in checks]:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {', '.join(unknown)}")
    return "\n".join([*lines, f"{endpoint} check passed", ""])


def paths() -> list[str]:
    """Return the paths of all endpoints and of their checks."""
    return [
        f"/{endpoint}{f'/{check}' if check else ''}" for endpoint, checks in CHECKS.items() for check in ("", *checks)
    ]
