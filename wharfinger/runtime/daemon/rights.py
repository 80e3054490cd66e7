"""The rights that a daemon needs in its cluster. Before a daemon takes the Lease, it checks that it has them.

NEEDED has the rights that every daemon needs, and each table FOR_… has the rights that one option needs in addition. The check
uses these tables, and a test compares the roles in the documents with them (`cluster_role`). The daemon also needs rights for
the objects in packages' charts. These rights are not checked here, because the objects are known only after rendering; if such
a right is missing, the package fails.

Rights are checked with SelfSubjectAccessReviews. Each of them is about exactly one verb on one resource, so the API server
itself evaluates rules about names or namespaces. A first review about all verbs on all resources is enough for a user with
all rights, which is the usual case.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import trio

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, ClusterError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.runtime.daemon.repeated_warning import RepeatedWarning
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import GROUP

log = logging.getLogger(__name__)

AT_ONCE: Final = 8
RETRY_S: Final = 2.0
"""The pause before the check is repeated if the API server did not answer."""
FIRST_S: Final = 5.0
MOST_S: Final = 60.0
"""The longest pause between two checks of a daemon that lacks rights: the first pause is FIRST_S, and each later one is twice as
long, up to MOST_S."""
AGAIN_S: Final = 3600.0
"""The time after which the same list of missing rights is logged again."""
REMEDY: Final = (
    "give the daemon's user the ClusterRole of docs/service.md; the daemon checks its rights again by itself"
)
HELD_S: Final = 300.0
"""The pause between two checks of the daemon's rights while the daemon works."""
_SEEN: Final = ("list", "watch")
_READ: Final = ("get", *_SEEN)
_REVIEW: Final = "authorization.k8s.io/v1"
FORBIDDEN: Final = 403


@dataclass(frozen=True, slots=True)
class Right:
    """The right to use some verbs on one resource. If ``namespace`` is "", the right is for all namespaces, or for a
    cluster-scoped resource. ``why`` completes "needed to ...".
    """

    verbs: tuple[str, ...]
    group: str
    resource: str
    why: str
    namespace: str = ""


NEEDED: Final = (
    Right((*_READ, "patch"), GROUP, "applications", "read the desired state, and set the finalizer"),
    Right(("patch",), GROUP, "applications/status", "report the status of Applications"),
    Right(
        (*_READ, "create", "patch", "delete"),
        GROUP,
        "modules",
        "read the desired state, set the finalizer, and manage the Modules of --modules-dir",
    ),
    Right(("patch",), GROUP, "modules/status", "report the status of Modules"),
    Right(
        (*_SEEN, "create", "patch", "delete"),
        GROUP,
        "packagerepositories",
        "find packages, and manage the repository of --modules-dir",
    ),
    Right(("patch",), GROUP, "packagerepositories/status", "report the status of PackageRepositories"),
    Right((*_SEEN, "create", "patch", "delete"), GROUP, "packageindexes", "store the versions of followed packages"),
    Right(
        (*_READ, "create", "patch"),
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "install and update its own definitions and those of packages",
    ),
    Right(
        (*_READ, "create"), "", "namespaces", "create its own namespace and those of Modules, and watch their labels"
    ),
    Right(
        (*_READ, "create", "update", "patch", "delete"),
        "",
        "secrets",
        "store release records and the state of packages, and read settings and logins",
    ),
    Right(
        (*_READ, "create", "update"),
        "",
        "configmaps",
        "read settings, and write settings of addon-operator's modules",
    ),
    Right(("list",), "", "events", "report why an object is not ready"),
    Right(("create", "patch"), "events.k8s.io", "events", "write Events about packages"),
    Right(
        ("get", "create", "patch"),
        "coordination.k8s.io",
        "leases",
        "ensure that only one daemon works at a time",
        namespace=SYSTEM_NAMESPACE,
    ),
)


FOR_POOLS: Final = (
    Right(_READ, GROUP, "workerpools", "read how many pods to keep ready"),
    Right(("patch",), GROUP, "workerpools/status", "report the status of WorkerPools"),
    Right(
        (*_READ, "create", "delete"),
        GROUP,
        "workerclaims",
        "read which claims wait for a pod, and claim pods for hooks",
    ),
    Right(("patch",), GROUP, "workerclaims/status", "report the result of WorkerClaims"),
    Right((*_READ, "create", "patch", "delete"), "", "pods", "create, claim and delete the pods of WorkerPools"),
    Right(("get", "create"), "", "pods/exec", "run hooks in pods of WorkerPools"),
)
"""The rights that a daemon needs in addition with `--worker-pools`."""


FOR_ADMISSION: Final = (
    Right(
        (*_SEEN, "create", "patch", "delete"),
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "register the admission server and validating hooks with API servers",
    ),
    Right(
        (*_SEEN, "create", "patch", "delete"),
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        "register mutating hooks with API servers",
    ),
)
"""The additional rights that a daemon needs if it runs with `--admission`."""


FOR_ADMISSION_SERVICE: Final = (
    Right(
        ("create", "patch"),
        "discovery.k8s.io",
        "endpointslices",
        "direct the admission Service to the daemon at work",
        namespace=SYSTEM_NAMESPACE,
    ),
)
"""The rights that a daemon needs in addition with `--admission-pod-ip`, in the namespace of its Service."""


FOR_ACCOUNTS: Final = (
    Right(("impersonate",), "", "serviceaccounts", "act with the rights of the packages' service accounts"),
)
"""The right that a daemon needs in addition with `--require-service-account`."""


def rights_of_admission(service: tuple[str, str] | None, pod: str) -> tuple[Right, ...]:
    """Return the additional rights that a daemon needs to serve admission. They include rights for the Service if the Service
    sends requests to the address of the daemon's pod.
    """
    if service is None or not pod:
        return FOR_ADMISSION
    return (*FOR_ADMISSION, *(replace(right, namespace=service[0]) for right in FOR_ADMISSION_SERVICE))


@dataclass(frozen=True, slots=True, order=True)
class Missing:
    """A verb on a resource that the daemon has no right to use."""

    resource: str
    verb: str
    namespace: str
    why: str

    def __str__(self) -> str:
        """Return a text like ``create leases.coordination.k8s.io in wharfinger-system``."""
        return f"{self.verb} {self.resource}" + (f" in {self.namespace}" if self.namespace else "")


async def missing_rights(client: ClusterClient, needed: Sequence[Right] = NEEDED) -> tuple[Missing, ...]:
    """Return the needed rights that the client's user lacks, sorted; an empty result if the server refuses the check.

    Raises ClusterError.
    """
    try:
        if await _may(client, "*", "*", "*", ""):
            return ()
        asked = [(right, verb) for right in needed for verb in right.verbs]
        found = await each(asked, lambda one: _missing(client, *one), limit=AT_ONCE)
    except ApiError as error:
        if error.code != FORBIDDEN:
            raise
        log.warning("the daemon's rights cannot be checked, so the daemon assumes that it has all of them: %s", error)
        return ()
    return tuple(sorted(one for one in found if one is not None))


async def await_rights(client: ClusterClient, tell: Callable[[str], None], needed: Sequence[Right] = NEEDED) -> None:
    """Return once no right is missing. After each check, ``tell`` is called with one line about the problem, or with "" if
    there is none.

    The missing rights are logged when they change, and again every AGAIN_S.
    """
    lacking, unanswered = RepeatedWarning(log, AGAIN_S), RepeatedWarning(log, MOST_S)
    pause = FIRST_S
    while True:
        try:
            missing = await missing_rights(client, needed)
        except ClusterError as error:
            tell(f"the daemon's rights cannot be checked: {error}")
            unanswered.warn(f"the daemon's rights cannot be checked: {error}; trying again every {RETRY_S:g} s")
            await trio.sleep(RETRY_S)
            continue
        if not missing:
            tell("")
            return
        tell(f"lacks rights: {listed(missing)}")
        lacking.warn(f"on standby, because the daemon lacks rights: {listed(missing)}; {REMEDY}")
        await trio.sleep(pause)
        pause = min(pause * 2, MOST_S)


async def watch_rights(client: ClusterClient, needed: Sequence[Right] = NEEDED) -> None:
    """Check the rights every HELD_S while the daemon works. Log missing rights when they change, and again every AGAIN_S.

    The Lease is kept even if rights are lost: rights are often missing only for a moment while somebody changes them, and a
    release of the Lease would end all work under way.
    """
    said = RepeatedWarning(log, AGAIN_S)
    while True:
        await trio.sleep(HELD_S)
        try:
            missing = await missing_rights(client, needed)
        except ClusterError:
            continue  # the other parts that call the API server report this error
        if missing:
            said.warn(f"the daemon lacks rights that it had when it started: {listed(missing)}; {REMEDY}")
        elif said.clear():
            log.info("the daemon again has all rights that it needs")


def listed(missing: Iterable[Missing]) -> str:
    """Return a text like ``create, patch customresourcedefinitions.apiextensions.k8s.io (to install ...); ...``."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for one in missing:
        verbs.setdefault((one.resource, one.namespace, one.why), []).append(one.verb)
    return "; ".join(
        f"{', '.join(each)} {resource}{f' in {namespace}' if namespace else ''} (to {why})"
        for (resource, namespace, why), each in verbs.items()
    )


def cluster_role(name: str, needed: Sequence[Right] = NEEDED) -> JsonObject:
    """Return the ClusterRole with all needed rights.

    Rights that are needed in one namespace only are granted in all namespaces, because a ClusterRole cannot restrict them.
    """
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [right.group], "resources": [right.resource], "verbs": list(right.verbs)} for right in needed
        ],
    }


async def _missing(client: ClusterClient, right: Right, verb: str) -> Missing | None:
    if await _may(client, verb, right.group, right.resource, right.namespace):
        return None
    name, _, subresource = right.resource.partition("/")
    shown = f"{name}.{right.group}" if right.group else name
    return Missing(f"{shown}/{subresource}" if subresource else shown, verb, right.namespace, right.why)


async def _may(client: ClusterClient, verb: str, group: str, resource: str, namespace: str) -> bool:
    name, _, subresource = resource.partition("/")
    attributes: JsonObject = {"verb": verb, "group": group, "resource": name}
    if subresource:
        attributes["subresource"] = subresource
    if namespace:
        attributes["namespace"] = namespace
    review: JsonObject = {
        "apiVersion": _REVIEW,
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    answer = await client.create(review)
    return find(answer, "status", "allowed") is True
