"""A trial: a daemon in this process installs, upgrades and removes a package, as an account with certain rights.

The API server is an embedded one, which authorizes every request, and reports each request to an observer. The composition root
passes the function that opens the server. The daemon works as in `wharfinger run`: it runs hooks and renders charts. It makes
its own requests as an administrator, and requests for the package as the account. So the recorded requests of the account are
all requests that the package needs.

A trial ends when the package is gone, when the package reports a refused request, or when one step takes longer than
``limit_s`` seconds. There is one exception: if the package has been applied, but is not ready after ``limit_s`` seconds, the
next step begins. Such a package may wait for something that the embedded server cannot provide, such as an API that the
package's pods would serve.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.errors import ConflictError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.formats.json.value import JsonObject, find_list, find_object, find_str
from wharfinger.hooks.containment.cluster_access import CredentialsPolicy
from wharfinger.kube.access_rules import JudgedRequest
from wharfinger.packages.errors import PackageError
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.runtime.daemon.config import DaemonConfig
from wharfinger.runtime.daemon.daemon import open_daemon
from wharfinger.runtime.daemon.service_manager import ServiceManager
from wharfinger.runtime.inspector import Inspector
from wharfinger.runtime.receipts.rights import Grant, Part, objects_of, refused
from wharfinger.runtime.receipts.subject import Subject, place, repository
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.hook_runs import HOOK_AGENT

SETTLE_S: Final = 10.0
"""The time limit, in seconds, of two waits. After the objects of the plan were created, the trial waits for the run of a hook.
If the package is not ready, the trial waits until the package has no running or waiting task.
"""
WAITING: Final = frozenset({Reason.NOT_READY, Reason.WORKLOAD_FAILED})
"""The reasons in the status of packages whose objects are applied, but not healthy."""
LOOK_S: Final = 0.05
ADMIN: Final = "receipt-admin"
_DAEMON: Final = "wharfinger/"
_SOON: Final = BackoffPolicy(initial_s=0.5, max_s=1.0)
_LEASE_S: Final = 300.0
"""The duration of the daemon's Lease. It can be long, because no other daemon waits for the Lease, and it must not be short,
because a daemon on a busy machine might renew the Lease too late.
"""

OpenServer = Callable[[Path, Callable[[JudgedRequest], None]], AbstractAsyncContextManager[Path]]
"""A function that opens an API server in this process. It takes a folder and an observer of requests, and yields the
kubeconfig of an administrator.
"""


class TrialError(PackageError):
    """A step of a trial could not be completed for a reason other than a refused request."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The paths of the programs with which the daemon of a trial renders charts."""

    helm: Path
    engine: Path | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a trial: the package, the two versions that are installed one after the other, and the objects that are
    created once the first version is installed.

    ``old`` is the folder of the first version; it is the package's own folder if there is no older version. ``limit_s`` is
    the time limit of each step in seconds.
    """

    subject: Subject
    old: Path
    versions: tuple[str, str]
    objects: tuple[JsonObject, ...] = ()
    limit_s: float = 300.0


@dataclass(slots=True)
class Record:
    """The requests that a package made in a trial, grouped by part of the package. ``failure`` is the package's message about a
    refused request; "" if the trial succeeded.
    """

    requests: dict[Part, list[JudgedRequest]] = field(default_factory=dict)
    failed_in: Part | None = None
    failure: str = ""
    unready: str = ""
    """The reason why the package did not become ready within the limit after it was applied; "" if there is none."""
    phase: Part = Part.PACKAGE

    def take(self, user: str, request: JudgedRequest) -> None:
        """Record a request of the account. A request of a hook is recorded under the part HOOKS, in whatever phase of the trial
        it is made.
        """
        if request.user != user:
            return
        own = request.agent.startswith(_DAEMON) and not request.agent.endswith(f" {HOOK_AGENT}")
        self.requests.setdefault(self.phase if own else Part.HOOKS, []).append(request)

    def refusals(self, user: str) -> list[tuple[Part, JudgedRequest]]:
        """Return the refused requests of the account ``user``, each with the part of the trial in which it was made."""
        return [(part, request) for part, made in self.requests.items() for request in refused(made, user)]


async def run_trial(
    plan: Plan, grant: Grant | None, programs: Programs, open_server: OpenServer, folder: Path
) -> Record:
    """Run a trial in an empty folder and return its record. ``grant`` has the rights of the account; None means all rights.

    Raises TrialError, PackageError, ClusterError, and the errors of a daemon that cannot start.
    """
    record, user = Record(), plan.subject.account.user
    async with open_server(folder / "server", lambda request: record.take(user, request)) as kubeconfig:
        connection = await trio.to_thread.run_sync(load_connection, kubeconfig, "", folder / "certificates")
        async with open_client(connection) as client:
            await _prepare(client, plan.subject, grant)
            config = _config(kubeconfig, folder, programs)
            inspectors: list[Inspector] = []

            @asynccontextmanager
            async def inspected(_path: Path, inspector: Inspector) -> AsyncIterator[None]:
                inspectors.append(inspector)
                yield

            async with open_daemon(config, inspected, ServiceManager(), _no_metrics), _follow(client, plan) as informer:
                await _Steps(plan, record, client, informer, inspectors[0], folder).run()
    return record


class _RefusedError(Exception):
    """The status or a task of the package reports that the API server refused a request (403)."""


@dataclass(frozen=True, slots=True)
class _Steps:
    plan: Plan
    record: Record
    client: ClusterClient
    informer: Informer
    inspector: Inspector
    folder: Path

    async def run(self) -> None:
        subject, (first, second) = self.plan.subject, self.plan.versions
        packages = self.folder / "packages"
        try:
            await trio.to_thread.run_sync(place, self.plan.old, packages / subject.name, first)
            await self.client.create(repository(packages))
            await self.client.create(subject.resource(first))
            await self._until_ready(first)
            await self._show_objects()
            self.record.phase = Part.UPGRADE
            await trio.to_thread.run_sync(place, subject.folder, packages / subject.name, second)
            await self.client.merge_patch(subject.key, {"spec": {"packageVersion": second}})
            await self._until_ready(second)
            await self._until_idle()
            self.record.phase = Part.REMOVAL
            await self.client.delete(subject.key)
            await self._until(lambda obj: obj is None, "is not removed")
        except _RefusedError as refusal:
            self.record.failed_in, self.record.failure = self.record.phase, str(refusal)

    async def _until_ready(self, version: str) -> None:
        def ready(obj: JsonObject | None) -> bool:
            return (
                find_str(obj, "status", "summary", "state") == "Ready"
                and find_str(obj, "status", "currentVersion", "version") == version
            )

        try:
            await self._until(ready, f"is not ready in version {version}")
        except TrialError:
            obj = self.informer.get(self.plan.subject.key)
            if self.record.refusals(self.plan.subject.account.user) or not _is_applied(obj, version):
                raise
            self.record.unready = find_str(obj, "status", "summary", "message")

    async def _until(self, holds: Callable[[JsonObject | None], bool], what: str) -> None:
        """Wait until ``holds`` returns true for the resource of the package. ``what`` is the predicate of the error message,
        such as ``is not removed``.

        Raises _RefusedError if the status of the resource reports a refusal, and TrialError after the limit.
        """
        last: JsonObject | None = None
        with trio.move_on_after(self.plan.limit_s), self.informer.changes() as changes:
            while True:
                last = self.informer.get(self.plan.subject.key)
                if holds(last):
                    return
                said = find_str(last, "status", "summary", "message")
                if self.record.refusals(self.plan.subject.account.user) and "orbidden" in said:
                    raise _RefusedError(said)
                await changes.wait()
        said = find_str(last, "status", "summary", "message")
        raise TrialError(
            f"{self.plan.subject.id} {what} after {self.plan.limit_s:g} s: {said or 'its resource has no status'}"
        )

    async def _show_objects(self) -> None:
        """Create the objects of the plan. Then wait until the hooks that watch these objects have run. If no run has ended
        after SETTLE_S, no hook is expected to run.
        """
        await self._until_idle()
        before = await self._runs()
        for obj in self.plan.objects:
            try:
                await self.client.create(obj)
            except ConflictError as error:
                if error.reason != "AlreadyExists":
                    raise
        if not self.plan.objects:
            return
        with trio.move_on_after(SETTLE_S):
            while await self._runs() == before:  # noqa: ASYNC110 - the inspector reports no changes
                await trio.sleep(LOOK_S)
        await self._until_idle()

    async def _runs(self) -> int:
        found = await self.inspector.package(self.plan.subject.id.name)
        return sum(hook.runs for hook in found.hooks) if found is not None else 0

    async def _until_idle(self) -> None:
        """Wait until no task of the package runs or waits, and no event waits for a hook. Raises _RefusedError, TrialError.

        If the package is not ready, one of its tasks waits for objects, so the wait ends after SETTLE_S without an error.
        """
        with trio.move_on_after(SETTLE_S if self.record.unready else self.plan.limit_s):
            while True:
                found = await self.inspector.package(self.plan.subject.id.name)
                if found is not None and not found.queue.tasks and not any(hook.waiting for hook in found.hooks):
                    return
                errors = [task.error for task in found.queue.tasks if task.error] if found is not None else []
                if self.record.refusals(self.plan.subject.account.user) and any("orbidden" in each for each in errors):
                    raise _RefusedError(errors[0])
                await trio.sleep(LOOK_S)
        if not self.record.unready:
            raise TrialError(
                f"{self.plan.subject.id}: its tasks and hooks are not done after {self.plan.limit_s:g} s; choose a longer "
                "--timeout"
            )


def _is_applied(obj: JsonObject | None, version: str) -> bool:
    """Return whether all objects of this version were applied, so that the package only waits until they are healthy."""
    conditions = {find_str(each, "type"): each for each in find_list(obj, "status", "conditions")}
    return (
        find_str(obj, "status", "currentVersion", "version") == version
        and find_str(conditions.get("ConfigurationApplied"), "status") == "True"
        and find_str(conditions.get("Ready"), "reason") in WAITING
    )


def _config(kubeconfig: Path, folder: Path, programs: Programs) -> DaemonConfig:
    return DaemonConfig(
        kubeconfig=kubeconfig,
        context="",
        state_dir=folder / "state",
        socket=folder / "state" / "debug.sock",
        helm=programs.helm,
        engine=programs.engine,
        grace_s=30.0,
        local_packages=(folder / "packages",),
        hook_credentials=CredentialsPolicy.ALL,
        require_account=True,
        backoff=_SOON,
        lease_s=_LEASE_S,
    )


@asynccontextmanager
async def _no_metrics(_address: str, _inspector: Inspector) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def _follow(client: ClusterClient, plan: Plan) -> AsyncGenerator[Informer, None]:
    async with open_informer(client, plan.subject.key.resource) as informer:
        await informer.wait_synced()
        yield informer


async def _prepare(client: ClusterClient, subject: Subject, grant: Grant | None) -> None:
    """Create the namespace, the account, and its roles and bindings. Raises ClusterError."""
    account = subject.account
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": account.namespace}}
    made: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": account.name, "namespace": account.namespace},
    }
    roles = _admin(subject) if grant is None else objects_of(grant, account)
    for obj in (namespace, made, *roles):
        try:
            await client.create(obj)
        except ConflictError:
            if find_object(obj, "metadata") != namespace["metadata"]:
                raise


def _admin(subject: Subject) -> Sequence[JsonObject]:
    account = subject.account
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ADMIN},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
        }
    ]
