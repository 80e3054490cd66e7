"""The rules in the roles of the daemon's chart. Each of them is needed, which is shown by one case for each resource.

A case runs the smallest work of the daemon that needs the rule. It uses a real token of the daemon's service account, and an
embedded control plane checks the rights for every request. With all rules, the work is never refused. Without the rule, it is
refused, and the daemon reports the verb, the resource, the account and the missing rule. A test fails if a rule has no case.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.deploy.rule_cases import ACCOUNT, CASES, NAMESPACE, OF_PACKAGES, OVER_TCP, Case, first_objects
from tests.deploy.test_chart import CHART, of_kind
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.errors import ClusterError, ForbiddenError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.control_plane.service import LOCAL, ControlPlane, open_control_plane
from wharfinger.control_plane.serving import Address, serve_control_plane
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, find_list, find_str
from wharfinger.kube.access_rules import FORBIDDEN, Access, JudgedRequest, Refusal, refusal_of
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.runtime.resources.custom_resources import ensure_crds
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

pytestmark = pytest.mark.unmeasured

OPTIONAL = ("daemon.requireServiceAccount=true", "admission.enabled=true", "daemon.workerPools=true")
PACKAGE_RULES = (
    "rbac.packageRules[0].apiGroups[0]=*",
    "rbac.packageRules[0].resources[0]=*",
    "rbac.packageRules[0].verbs[0]=list",
    "rbac.packageRules[0].verbs[1]=watch",
)
DAEMON = ServiceAccount(SYSTEM_NAMESPACE, "wharfinger")
ADMINISTRATOR = "admin-token"
WORK_S = 60.0
ROLES = ("ClusterRole", "Role")


@cache
def roles(*values: str) -> tuple[JsonObject, ...]:
    """Return the daemon's account, its roles, and their bindings from the chart with these values."""
    kinds = ("ServiceAccount", *ROLES, "ClusterRoleBinding", "RoleBinding")
    return tuple(obj for kind in kinds for obj in of_kind(kind, *OPTIONAL, *values))


def rules_of(obj: JsonObject) -> list[JsonObject]:
    return [as_object(rule, "a rule") for rule in find_list(obj, "rules")] if obj["kind"] in ROLES else []


def covers(rule: JsonObject, case: Case) -> bool:
    return case.rule in pairs_of(rule)


def removed(case: Case) -> list[tuple[str, str]]:
    """Return the group and the resource of each rule that is removed in a case."""
    rules = [rule for obj in roles(*PACKAGE_RULES) for rule in rules_of(obj) if covers(rule, case)]
    return [pair for rule in rules for pair in pairs_of(rule)]


def pairs_of(rule: JsonObject) -> list[tuple[str, str]]:
    return [
        (str(group), str(resource))
        for group in find_list(rule, "apiGroups")
        for resource in find_list(rule, "resources")
    ]


@dataclass
class Cluster:
    """A control plane in which the daemon has only the roles of the chart. ``judged`` has the requests for which the control
    plane checked the rights.
    """

    plane: ControlPlane
    admin: ClusterClient
    judged: list[JudgedRequest] = field(default_factory=list)

    async def apply_roles(self, case: Case, *, without: bool = False) -> None:
        """Apply the roles. If ``without`` is true, leave out the rule of the case.

        The rules for packages are applied only in their own case, because they also allow what other rules allow.
        """
        for obj in roles(*(PACKAGE_RULES if case is OF_PACKAGES else ())):
            kept = [rule for rule in rules_of(obj) if not (without and covers(rule, case))]
            body: JsonObject = {**obj, "rules": [*kept]} if obj["kind"] in ROLES else obj
            await self.admin.apply(body, field_manager="helm", force=True)

    async def token(self) -> str:
        """Return a new token of the daemon's account."""
        path = f"/api/v1/namespaces/{DAEMON.namespace}/serviceaccounts/{DAEMON.name}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        headers = {"authorization": f"Bearer {ADMINISTRATOR}"}
        async with httpx.AsyncClient(transport=self.plane.transport(), base_url=LOCAL, headers=headers) as http:
            answer = await http.post(path, json=body)
        return find_str(decode_json(answer.content, max_bytes=len(answer.content), what="token"), "status", "token")

    def refusals(self) -> list[Refusal]:
        """Return the requests of the daemon that the server refused."""
        said = [
            find_str(decode_json(each.message.encode(), max_bytes=len(each.message) * 4, what="Status"), "message")
            for each in self.judged
            if each.code == FORBIDDEN
        ]
        return [refusal for text in said if (refusal := refusal_of(text)) is not None]

    def did(self, access: Access) -> bool:
        """Return whether the daemon made a request that needs this access.

        If the daemon makes a request as the account of a package, it needs the right to impersonate this account.
        """
        if access.verb.startswith("impersonate"):
            return any(each.user == ACCOUNT.user for each in self.judged)
        return any(access in each.accesses() for each in self.judged)


@asynccontextmanager
async def prepared(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Create the objects that all cases use, and yield the cluster."""
    async with open_client(Connection(LOCAL, bearer(ADMINISTRATOR)), transport=plane.transport()) as admin:
        await ensure_crds(admin, "admin", worker_pools=True)
        for name in (SYSTEM_NAMESPACE, NAMESPACE):
            await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in first_objects():
            await admin.create(obj)
        yield Cluster(plane, admin)


async def work(case: Case, cluster: Cluster, client: HttpClusterClient, log: pytest.LogCaptureFixture) -> str:
    """Run the work of a case for at most WORK_S seconds. Return everything that the daemon reported."""
    cluster.judged.clear()
    cluster.plane.handler.audit = cluster.judged.append
    log.clear()
    raised: list[str] = []
    with trio.move_on_after(WORK_S):
        try:
            await case.work(client)
        except* (ClusterError, RuntimeError) as group:
            raised = [str(error) for error in group.exceptions]
    cluster.plane.handler.audit = None
    return " ".join((log.text, *raised))


async def check(case: Case, cluster: Cluster, client: HttpClusterClient, log: pytest.LogCaptureFixture) -> None:
    """Check that the work of a case is refused without its rule, and is not refused with it."""
    refused = case.refused
    log.set_level(logging.INFO, "wharfinger")
    await cluster.apply_roles(case, without=True)
    said = await work(case, cluster, client, log)
    missing = Refusal(DAEMON.user, refused)
    assert missing in cluster.refusals(), said
    assert {each.user for each in cluster.refusals()} == {DAEMON.user}
    assert {(each.access.group, each.access.resource) for each in cluster.refusals()} <= {
        (refused.group, refused.resource),
        *removed(case),
    }
    where = f'in the namespace "{refused.namespace}"' if refused.namespace else "at the cluster scope"
    resource = f'cannot {refused.verb} resource "{refused.resource}" in API group "{refused.group}" {where}'
    assert f'User "{DAEMON.user}" {resource}' in said
    assert missing.remedy() in said
    await cluster.apply_roles(case)
    said = await work(case, cluster, client, log)
    assert cluster.refusals() == [], said
    assert cluster.did(refused), said


@pytest.mark.sampled(12)
@pytest.mark.parametrize("case", [*CASES, OF_PACKAGES], ids=lambda case: case.name)
async def test_the_daemon_is_refused_without_its_rule(
    case: Case, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_control_plane(token=ADMINISTRATOR, simulate=False) as plane, prepared(plane) as cluster:
        await cluster.apply_roles(case)
        connection = Connection(LOCAL, bearer(await cluster.token()))
        async with open_client(connection, transport=plane.transport()) as client:
            await check(case, cluster, client, caplog)


@pytest.mark.slow
async def test_commands_in_pods_are_refused_without_their_rule(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address, kubeconfig = Address("127.0.0.1", 0), tmp_path / "kubeconfig"
    async with (
        serve_control_plane(address, kubeconfig, ADMINISTRATOR, simulate=False) as serving,
        prepared(serving.control_plane) as cluster,
    ):
        await cluster.apply_roles(OVER_TCP)
        async with open_client(Connection(serving.url, bearer(await cluster.token()))) as client:
            await check(OVER_TCP, cluster, client, caplog)


async def test_objects_of_packages_are_refused_without_cluster_admin(autojump_clock: MockClock) -> None:
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"ports": [{"port": 80}]},
    }
    async with open_control_plane(token=ADMINISTRATOR, simulate=False) as plane, prepared(plane) as cluster:
        for each in roles("rbac.clusterAdmin=true"):
            if find_str(each, "metadata", "name") != "wharfinger-packages":
                await cluster.admin.apply(each, field_manager="helm", force=True)
        connection = Connection(LOCAL, bearer(await cluster.token()))
        async with open_client(connection, transport=plane.transport()) as client:
            with pytest.raises(ForbiddenError) as caught:
                await client.apply(obj, field_manager="wharfinger")
            refusal = Refusal(DAEMON.user, Access("", "services", "patch", NAMESPACE))
            assert caught.value.refusal == refusal
            assert str(caught.value).endswith(refusal.remedy())
            for each in roles("rbac.clusterAdmin=true"):
                await cluster.admin.apply(each, field_manager="helm", force=True)
            await client.apply(obj, field_manager="wharfinger")


def test_every_rule_of_the_chart_has_a_case() -> None:
    rules = [rule for obj in roles(*PACKAGE_RULES) for rule in rules_of(obj)]
    found = [pair for rule in rules for pair in pairs_of(rule)]
    assert sorted(found) == sorted(case.rule for case in (*CASES, OVER_TCP, OF_PACKAGES))
    # The rules above must be all rules in the templates. A rule that depends on another value would be missing.
    written = sum(template.read_text().count("apiGroups:") for template in (CHART / "templates").iterdir())
    assert written == len(rules) - 1  # one rule comes from the values
