"""A day of a cluster, determined by a seed: actions of people and autoscalers, and failures, one after the other.

After each event, the cluster has to settle: every desired Application is Ready, and every other Application is deleted. Then
nothing happens for a while. During this time, the daemon may write only what the audit always allows.
"""

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import trio

from tests.runtime.soak.audit import Allows, App, Audit, all_of, start_of_daemon, status_of
from tests.runtime.soak.charts import CHARTS, SCALED
from tests.runtime.soak.daemon import Daemon
from tests.runtime.soak.people import NAMESPACE, People
from tests.runtime.soak.server import Server
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of
from wharfinger.runtime.resources.resources import APPLICATION, PACKAGE_REPOSITORY

CONFIG_MAP: Final = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
SECRET: Final = ResourceType("", "v1", "Secret", "secrets", namespaced=True)
SETTLED_S: Final = 900.0
"""The time limit for the cluster to settle; failures are retried with pauses of up to five minutes."""
LOOK_S: Final = 5.0
AFTERWARDS_S: Final = 30.0
"""The time after the cluster has settled in which writes still belong to a cause."""


class Script:
    """A script of events. ``apps`` is the desired number of Applications, ``quiet_s`` the longest pause between events, and
    ``done`` the list of past events.
    """

    def __init__(
        self,
        seed: int,
        apps: int,
        server: Server,
        daemon: Daemon,
        client: ClusterClient,
        audit: Audit,
        *,
        quiet_s: float,
    ) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - the same run each time
        self.people = People(client, audit, self.draw, namespaces=max(2, apps // 5))
        self.apps = apps
        self.server = server
        self.daemon = daemon
        self.audit = audit
        self.quiet_s = quiet_s
        self.done: list[str] = []

    # -- the day

    async def begin(self) -> None:
        """Create the namespaces, start the daemon, and create all Applications."""
        for number in range(self.people.namespaces):
            await self.people.make_namespace(f"team{number}")
        with self.audit.cause("the beginning", lambda _: True):
            self.daemon.start()
            for _ in range(self.apps):
                await self.people.create()
            await self._settled()

    async def run(self, until_s: float) -> None:
        """Perform one event after the other until this time."""
        weights: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (8, self.autoscaled),
            (3, self.rolled_out),
            (3, self.pod_deleted),
            (3, self.pod_unready),
            (1, self.pod_broken),
            (3, self.edited),
            (3, self.settings_changed),
            (2, self.upgraded),
            (2, self.created),
            (2, self.removed),
            (3, self.daemon_restarted),
            (3, self.server_restarted),
            (2, self.namespace_deleted_without_daemon),
            (1, self.namespace_deleted_without_server),
            (1, self.scaled_without_daemon),
            (2, self.daemon_killed_at_work),
            (2, self.server_lost_at_work),
            (2, self.restarted_while_rolled_out),
        ]
        while trio.current_time() < until_s:
            (step,) = self.draw.choices([one for _, one in weights], [weight for weight, _ in weights])
            await step()
            self.audit.after = f"{self.done[-1]}, in a quiet time"
            await trio.sleep(self.draw.uniform(120.0, self.quiet_s))
            await self._look_at_what_was_drawn()

    async def end(self) -> None:
        """Delete all Applications and all repositories."""
        with self.audit.cause("the end", lambda _: True):
            for app in sorted(self.people.wanted):
                await self.people.client.delete(ObjectKey(APPLICATION, *app))
            self.people.wanted.clear()
            await self._settled()
            for repository in (await self.people.client.list(PACKAGE_REPOSITORY)).items:
                await self.people.client.delete(ObjectKey(PACKAGE_REPOSITORY, "", name_of(repository)))
            await self._settled()

    # -- events

    async def autoscaled(self) -> None:
        """Let an autoscaler write the number of replicas."""
        if (app := self.people.any(SCALED)) is not None:
            replicas = self.draw.randint(1, 6)
            with self._cause(f"scaling {'/'.join(app)} to {replicas}", status_of(app)):
                await self.people.scale(app, replicas)
                await self._settled()

    async def rolled_out(self) -> None:
        """Begin a rollout of a workload, as ``kubectl rollout restart`` does."""
        if (app := self.people.any(SCALED)) is not None:
            with self._cause(f"a rollout of {'/'.join(app)}", status_of(app)):
                annotations: JsonObject = {"kubectl.kubernetes.io/restartedAt": f"{trio.current_time()}"}
                template: JsonObject = {"metadata": {"annotations": annotations}}
                await self.people.client.merge_patch(self.people.workload(app), {"spec": {"template": template}})
                await self._settled()

    async def pod_deleted(self) -> None:
        """Delete a Pod, which its controller replaces."""
        if (pod := await self.people.any_pod()) is not None:
            with self._cause(f"the loss of Pod {pod[1].name}", status_of(pod[0])):
                await self.people.client.delete(pod[1])
                await self._settled()

    async def pod_unready(self) -> None:
        """Let a Pod be unready for some seconds."""
        await self._unready(self.draw.uniform(1.0, 40.0), lasts=False)

    async def pod_broken(self) -> None:
        """Let a Pod be unready for so long that the package is Degraded."""
        await self._unready(self.draw.uniform(90.0, 300.0), lasts=True)

    async def edited(self) -> None:
        """Edit a field that the chart sets. The daemon corrects it."""
        if (app := self.people.any(CHARTS)) is not None:
            with self._cause(
                f"an edit of ConfigMap {'/'.join(app)}", status_of(app), _ends(f"/configmaps/{app[1]}", app)
            ):
                await self.people.client.merge_patch(ObjectKey(CONFIG_MAP, *app), {"data": {"text": "edited"}})
                await self._settled()

    async def settings_changed(self) -> None:
        """Change the settings of an Application."""
        if (app := self.people.any(CHARTS)) is not None:
            with self._cause(f"other settings of {'/'.join(app)}", all_of(app)):
                await self.people.change(app)
                await self._settled()

    async def upgraded(self) -> None:
        """Change the version of an Application."""
        if (app := self.people.any(CHARTS)) is not None:
            with self._cause(f"another version of {'/'.join(app)}", all_of(app)):
                await self.people.upgrade(app)
                await self._settled()

    async def created(self) -> None:
        """Create an Application."""
        namespace = self.people.any_namespace()
        app = (namespace, f"app{self.people.names}")
        with self._cause(f"the creation of {'/'.join(app)}", all_of(app)):
            await self.people.create(namespace)
            await self._settled()

    async def removed(self) -> None:
        """Delete an Application."""
        if len(self.people.wanted) > self.apps // 2 and (app := self.people.any(CHARTS)) is not None:
            with self._cause(f"the removal of {'/'.join(app)}", all_of(app)):
                await self.people.remove(app)
                await self._settled()

    async def daemon_restarted(self) -> None:
        """Stop or kill the daemon, and start it again."""
        crash = self.draw.random() < 0.5
        with self._cause("a crash of the daemon" if crash else "a restart of the daemon", start_of_daemon):
            await self.daemon.stop(crash=crash)
            await trio.sleep(self.draw.uniform(1.0, 120.0))
            self.daemon.start()
            await self._settled()

    async def server_restarted(self) -> None:
        """Restart the API server with its stored objects. If the Lease of the daemon expires meanwhile, the daemon
        restarts too.
        """
        down_s = self.draw.uniform(0.5, 60.0)
        with self._cause(f"an outage of the API server of {down_s:.0f} s", start_of_daemon):
            self.server.stop(down_s)
            await self.server.up.wait()
            await self._settled()

    async def namespace_deleted_without_daemon(self) -> None:
        """Delete a namespace while the daemon is stopped."""
        namespace = self.people.any_namespace()
        apps = [app for app in sorted(self.people.wanted) if app[0] == namespace]
        with self._cause(f"the deletion of {namespace} without a daemon", start_of_daemon, *map(all_of, apps)):
            await self.daemon.stop(crash=self.draw.random() < 0.5)
            await self.people.delete_namespace(namespace)
            await trio.sleep(self.draw.uniform(1.0, 300.0))
            self.daemon.start()
            await self._settled()
        await self._anew(namespace, len(apps))

    async def namespace_deleted_without_server(self) -> None:
        """Delete a namespace right before an outage of the API server."""
        namespace = self.people.any_namespace()
        apps = [app for app in sorted(self.people.wanted) if app[0] == namespace]
        with self._cause(f"the deletion of {namespace} before an outage", start_of_daemon, *map(all_of, apps)):
            await self.people.delete_namespace(namespace)
            await trio.sleep(self.draw.choice([0.0, 0.1, 1.0, 3.0]))
            self.server.stop(self.draw.uniform(0.5, 60.0))
            await self.server.up.wait()
            await self._settled()
        await self._anew(namespace, len(apps))

    async def scaled_without_daemon(self) -> None:
        """While the daemon is stopped, scale one Application, change another, and delete a third."""
        apps = [
            app
            for app in (self.people.any(SCALED), self.people.any(CHARTS), self.people.any(CHARTS))
            if app is not None
        ]
        if len(set(apps)) < 3:
            return
        words = "changes without a daemon of " + ", ".join(map("/".join, apps))
        with self._cause(words, start_of_daemon, status_of(apps[0]), all_of(apps[1]), all_of(apps[2])):
            await self.daemon.stop(crash=self.draw.random() < 0.5)
            await self.people.scale(apps[0], self.draw.randint(1, 6))
            await self.people.change(apps[1])
            await self.people.remove(apps[2])
            await trio.sleep(self.draw.choice([0.0, 2.0, 60.0]))
            self.daemon.start()
            await self._settled()

    async def daemon_killed_at_work(self) -> None:
        """Kill the daemon while it installs one Application, upgrades or reconfigures another, and removes a third."""
        with self._work() as apps:
            await self._begin_work(*apps)
            await trio.sleep(self.draw.choice([0.0, 0.01, 0.1, 1.0, 3.0, 6.0]))
            await self.daemon.stop(crash=True)
            await trio.sleep(self.draw.uniform(0.0, 30.0))
            self.daemon.start()
            await self._settled()

    async def server_lost_at_work(self) -> None:
        """Stop the API server while one Application is installed, another upgraded or reconfigured, and a third removed."""
        with self._work() as apps:
            await self._begin_work(*apps)
            await trio.sleep(self.draw.choice([0.0, 0.01, 0.1, 1.0, 3.0, 6.0]))
            self.server.stop(self.draw.uniform(0.5, 60.0))
            await self.server.up.wait()
            await self._settled()

    async def restarted_while_rolled_out(self) -> None:
        """Scale a workload, and restart the daemon while the number of its Pods changes."""
        if (app := self.people.any(SCALED)) is not None:
            with self._cause(
                f"a restart of the daemon while {'/'.join(app)} is scaled", start_of_daemon, status_of(app)
            ):
                await self.people.scale(app, self.draw.randint(1, 6))
                await trio.sleep(self.draw.uniform(0.0, 5.0))
                await self.daemon.stop(crash=self.draw.random() < 0.5)
                self.daemon.start()
                await self._settled()

    # -- helpers

    @contextmanager
    def _work(self) -> Iterator[tuple[App, App, App]]:
        """Yield three Applications: one to be created, one to be changed, and one to be removed."""
        new = (self.people.any_namespace(), f"app{self.people.names}")
        changed, gone = self.draw.sample(sorted(self.people.wanted), 2)
        words = "work on " + ", ".join(map("/".join, (new, changed, gone)))
        with self._cause(words, start_of_daemon, all_of(new), all_of(changed), all_of(gone)):
            yield new, changed, gone

    async def _begin_work(self, new: App, changed: App, gone: App) -> None:
        await self.people.create(new[0])
        await (self.people.upgrade(changed) if self.draw.random() < 0.5 else self.people.change(changed))
        await self.people.remove(gone)

    def _cause(self, words: str, *allows: Allows) -> AbstractContextManager[None]:
        self.done.append(f"{words} (at {trio.current_time():.0f} s)")
        return self.audit.cause(self.done[-1], *allows)

    async def _unready(self, for_s: float, *, lasts: bool) -> None:
        if (found := await self.people.any_pod()) is None:
            return
        app, pod = found
        with self._cause(f"Pod {pod.name} not ready for {for_s:.0f} s", status_of(app)):
            if lasts:
                self.audit.excused.add(app)
            for knob in ("true", None):
                annotations: JsonObject = {"wharfinger.dev/never-ready": knob}
                await self.people.client.merge_patch(pod, {"metadata": {"annotations": annotations}})
                if knob:
                    await trio.sleep(for_s)
            await self._settled()
            self.audit.excused.discard(app)

    async def _anew(self, namespace: str, apps: int) -> None:
        """Create a deleted namespace again, with as many Applications as before."""
        with self.audit.cause(f"the new {namespace}", _within(namespace)):
            await self.people.make_namespace(namespace)
            for _ in range(apps):
                await self.people.create(namespace)
            await self._settled()

    # -- checks

    async def _settled(self) -> None:
        """Wait until the desired state is reached, and then for AFTERWARDS_S. After a timeout, add a finding."""
        why = "the cluster was not checked yet"
        with trio.move_on_after(SETTLED_S) as patience:
            while why:
                await trio.sleep(LOOK_S)
                why = await self._unsettled()
        if patience.cancelled_caught:
            self.audit.findings.append(f"{trio.current_time():.0f} s, after {self.audit.after}: not settled: {why}")
        await trio.sleep(AFTERWARDS_S)

    async def _unsettled(self) -> str:
        try:
            found = (await self.people.client.list(APPLICATION)).items
            namespaces = (await self.people.client.list(NAMESPACE)).items
        except NotFoundError:
            return "the daemon has not created its CRDs yet"
        there = {(find_str(one, "metadata", "namespace"), find_str(one, "metadata", "name")): one for one in found}
        if set(there) != set(self.people.wanted):
            return f"there are {sorted(set(there) ^ set(self.people.wanted))}"
        if any(find_str(one, "status", "phase") == "Terminating" for one in namespaces):
            return "a namespace is being deleted"
        for app, one in there.items():
            truths = {
                find_str(each, "type"): find_str(each, "status") for each in find_list(one, "status", "conditions")
            }
            seen = find_int(one, "status", "observedGeneration") == find_int(one, "metadata", "generation")
            if not seen or (truths.get("Ready"), truths.get("Reconciling")) != ("True", "False"):
                return f"{'/'.join(app)}: {find(one, 'status', 'summary')}"
            data = find_object(await self.people.client.get(ObjectKey(CONFIG_MAP, *app)), "data")
            if data != {"text": self.people.wanted[app].text, "version": self.people.wanted[app].version}:
                return f"{'/'.join(app)}: {data}"
        return ""

    async def _look_at_what_was_drawn(self) -> None:
        for app, wanted in self.people.wanted.items():
            if wanted.chart == "drawn":
                drawn = str(find(await self.people.client.get(ObjectKey(SECRET, *app)), "data", "password"))
                if wanted.drawn and wanted.drawn != drawn:
                    self.audit.findings.append(f"after {self.audit.after}: {'/'.join(app)}: drawn anew")
                wanted.drawn = drawn


def _ends(end: str, app: App) -> Allows:
    return lambda path: path.endswith(end) and f"/namespaces/{app[0]}/" in path


def _within(namespace: str) -> Allows:
    return lambda path: f"/namespaces/{namespace}/" in path or f"/{namespace}-" in path


def left_behind(server: Server) -> list[str]:
    """Return the objects that still have a label or a finalizer of the daemon."""
    found = []
    for key in sorted(server.storage.keys, key=str):
        obj = server.storage.get(key)
        names: list[JsonValue] = [*find_object(obj, "metadata", "labels"), *find_list(obj, "metadata", "finalizers")]
        if any(str(name).startswith("wharfinger.dev/") for name in names):
            found.append(f"{key.collection} {key.place}")
    return found
