"""Cases for test_daemon_rules: for each rule in the roles of the daemon's chart, the smallest work of the daemon that needs it.

A case names one resource of one rule, and the request that the API server refuses first if the rule is missing. The work of a
case calls code of the daemon with a client of the daemon's service account. Problems are raised as errors or written to the
log.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from tests.pools.pods.pool_cluster import claim_object, pool_object
from tests.runtime.support.objects import repository
from tests.runtime.support.statuses import ready
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.api.object_events import last_event
from wharfinger.cluster.api.pod_exec import PodCommand
from wharfinger.cluster.lease.lease import open_lease
from wharfinger.cluster.watch.informer import open_informer, wait_listed
from wharfinger.control_plane.service import utc_now
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.access_rules import Access
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.sources.source import Source
from wharfinger.pools.pods.pod_pools import open_pod_pools
from wharfinger.pools.pods.resources import POD
from wharfinger.runtime.admission.endpoint import Endpoint, endpoint_slice
from wharfinger.runtime.admission.hook_webhooks import HookWebhooks
from wharfinger.runtime.cluster_events.reasons import EventReason
from wharfinger.runtime.cluster_events.recorder import Subject, open_recorder
from wharfinger.runtime.controllers.caches import open_caches
from wharfinger.runtime.controllers.last_statuses import LastStatuses
from wharfinger.runtime.lifecycle.package_state import state_record
from wharfinger.runtime.repositories.index_objects import IndexObjects
from wharfinger.runtime.repositories.repository_controller import open_repositories
from wharfinger.runtime.resources.application_scope import ApplicationScope
from wharfinger.runtime.resources.custom_resources import ensure_crds
from wharfinger.runtime.resources.default_accounts import open_default_accounts
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId, ModuleId, PackageId
from wharfinger.runtime.resources.references import open_references
from wharfinger.runtime.resources.resources import CONFIG_MAP, GROUP, PACKAGE_REPOSITORY
from wharfinger.runtime.status.writer import StatusWriter

NAMESPACE: Final = "demo"
APP: Final = AppId(NAMESPACE, "app")
MODULE: Final = ModuleId("tuner")
SETTINGS: Final = ObjectKey(CONFIG_MAP, NAMESPACE, "settings")
DEPLOYMENT: Final = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)
ACCOUNT: Final = ServiceAccount(NAMESPACE, "package")

Work = Callable[[HttpClusterClient], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Case:
    """A case for one resource of a rule: the access that is refused without the rule, and the work that needs this access."""

    refused: Access
    work: Work
    of: tuple[str, str] | None = None
    """The group and the resource in the rule, if they differ from those of the request."""

    @property
    def rule(self) -> tuple[str, str]:
        """Return the group and the resource that the rule of this case contains."""
        return self.of or (self.refused.group, self.refused.resource)

    @property
    def name(self) -> str:
        """Return the name of the case: the resource with its group."""
        group, resource = self.rule
        return f"{resource}.{group}" if group else resource


def first_objects() -> list[JsonObject]:
    """Return the objects that the work of the cases needs, such as a package of each kind, a repository, a pool and a claim."""
    spec: JsonObject = {"packageName": "app", "packageVersion": "1.0.0"}
    metadata: JsonObject = {"name": APP.instance, "namespace": NAMESPACE}
    api_version = f"{GROUP}/v1alpha1"
    return [
        {"apiVersion": api_version, "kind": "Application", "metadata": metadata, "spec": spec},
        {
            "apiVersion": api_version,
            "kind": "Module",
            "metadata": {"name": MODULE.name},
            "spec": {"packageVersion": "1.0.0"},
        },
        repository("127.0.0.1:1/a"),
        pool_object(size=0),
        claim_object("lonely", "nowhere"),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT.name, "namespace": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": NAMESPACE}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": ACCOUNT.name, "namespace": NAMESPACE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT.name, "namespace": NAMESPACE}],
        },
    ]


async def read_wishes(client: ClusterClient) -> None:
    async with open_caches(client, ApplicationScope.NAMESPACE) as caches:
        await caches.filled()


async def read_accounts(client: ClusterClient) -> None:
    async with open_default_accounts(client) as accounts:
        await wait_listed(accounts.informer)


def report(identity: PackageId) -> Work:
    """Return work that writes the status of a package."""

    async def write(client: ClusterClient) -> None:
        writer = StatusWriter(lambda _: None, lambda *_: None)
        writer.unwritten.add(identity.name)
        await LastStatuses(client, writer, lambda _: ready()).write()

    return write


async def scan(client: ClusterClient) -> None:
    """Scan a repository that cannot be reached. Its status then reports the failure."""

    @asynccontextmanager
    async def open_away(_source: Source, package: str) -> AsyncIterator[tuple[Registry, str]]:
        await trio.lowlevel.checkpoint()
        if package != "here":
            raise RegistryError("the registry is away", transient=True)
        yield OciLayout(Path()), package

    async with open_informer(client, PACKAGE_REPOSITORY) as informer:
        await wait_listed(informer)
        async with open_repositories(client, informer, (), open_away, utc_now, lambda _: None):
            await trio.sleep_forever()


async def read_settings(client: ClusterClient) -> None:
    changed = trio.Event()
    async with open_references(client, lambda _: changed.set()) as references:
        references.want("owner", [SETTINGS])
        await changed.wait()
        if problem := references.problem(SETTINGS):
            raise RuntimeError(problem)


async def record_event(client: ClusterClient) -> None:
    async with open_recorder(client, utc_now, "host_1") as recorder:
        subject = Subject(f"{GROUP}/v1alpha1", "Module", "", MODULE.name, "u-1")
        recorder.record(subject, EventReason.LEADER_CHANGED, "host_1 is at work")
        await trio.sleep_forever()


async def act_as_a_package(client: ClusterClient) -> None:
    await client.acting_as(ACCOUNT).get(SETTINGS)


async def sweep_webhooks(client: ClusterClient) -> None:
    await HookWebhooks(client, "wharfinger").sweep(frozenset)


async def lead_the_service(client: ClusterClient) -> None:
    found = endpoint_slice(Endpoint("", 9443, (SYSTEM_NAMESPACE, "wharfinger"), "10.0.0.1"), 9443)
    assert found is not None
    await client.apply(found, field_manager="wharfinger", force=True)


async def keep_pools(client: ClusterClient) -> None:
    async with open_pod_pools(client, now=utc_now):
        await trio.sleep_forever()


async def lead(client: ClusterClient) -> None:
    problems: list[str] = []

    def waiting(why: str) -> None:
        problems.append(why)
        scope.cancel()

    with trio.CancelScope() as scope:
        async with open_lease(client, SYSTEM_NAMESPACE, "wharfinger", "host_1", now=utc_now, waiting=waiting):
            return
    raise RuntimeError(*problems)


async def follow_a_package(client: ClusterClient) -> None:
    async with open_informer(client, DEPLOYMENT) as deployments:
        await wait_listed(deployments)


async def run_in_a_pod(client: HttpClusterClient) -> None:
    """Run a command in a pod that does not exist. The API server checks the rights before it looks for the pod."""
    try:
        await client.executor.run(
            PodCommand(ObjectKey(POD, NAMESPACE, "pod"), ("true",)), stdout=lambda _: None, stderr=lambda _: None
        )
    except ApiError as error:
        if error.code != 404:
            raise


def case(group: str, resource: str, verb: str, work: Work, namespace: str = "") -> Case:
    return Case(Access(group, resource, verb, namespace), work)


CASES: Final = (
    case(GROUP, "applications", "list", read_wishes),
    case(GROUP, "applications/status", "patch", report(APP), NAMESPACE),
    case(GROUP, "modules", "list", read_wishes),
    case(GROUP, "modules/status", "patch", report(MODULE)),
    case(GROUP, "packagerepositories", "list", read_wishes),
    case(GROUP, "packagerepositories/status", "patch", scan),
    case(GROUP, "packageindexes", "list", lambda client: IndexObjects(client).read()),
    case(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "patch",
        lambda client: ensure_crds(client, "wharfinger"),
    ),
    case("", "namespaces", "list", read_accounts),
    case("", "secrets", "create", lambda client: state_record(client, APP).update(lambda state: state), NAMESPACE),
    case("", "configmaps", "list", read_settings, NAMESPACE),
    case("", "events", "list", lambda client: last_event(client, SETTINGS), NAMESPACE),
    case("events.k8s.io", "events", "create", record_event, "default"),
    Case(
        Access("", "configmaps", "impersonate-on:serviceaccount:get", NAMESPACE),
        act_as_a_package,
        of=("", "serviceaccounts"),
    ),
    case("admissionregistration.k8s.io", "validatingwebhookconfigurations", "list", sweep_webhooks),
    case("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list", sweep_webhooks),
    case("discovery.k8s.io", "endpointslices", "patch", lead_the_service, SYSTEM_NAMESPACE),
    case(GROUP, "workerpools", "list", keep_pools),
    case(GROUP, "workerclaims", "list", keep_pools),
    case(GROUP, "workerpools/status", "patch", keep_pools, "default"),
    case(GROUP, "workerclaims/status", "patch", keep_pools, "default"),
    case("", "pods", "list", keep_pools),
    case("coordination.k8s.io", "leases", "get", lead, SYSTEM_NAMESPACE),
)
"""The cases that need no connection."""
OVER_TCP: Final = case("", "pods/exec", "get", run_in_a_pod, NAMESPACE)
"""The case that needs a connection, because a command changes its protocol."""
OF_PACKAGES: Final = Case(Access("apps", "deployments", "list"), follow_a_package, of=("*", "*"))
