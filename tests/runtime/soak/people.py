"""Actions of people and autoscalers in a cluster with Applications, and the desired set of these Applications."""

import random
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

import trio

from tests.runtime.soak.audit import App, Audit
from tests.runtime.soak.charts import CHARTS, SCALED, VERSIONS
from tests.runtime.support.objects import application
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.resources.resources import APPLICATION

POD: Final = ResourceType("", "v1", "Pod", "pods", namespaced=True)
NAMESPACE: Final = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass(slots=True)
class Wanted:
    """The last desired state of an Application."""

    chart: str
    version: str
    text: str
    drawn: str = ""
    """The random text that its chart generated, once it is known."""


@dataclass(slots=True)
class People:
    """People and autoscalers. ``namespaces`` is the number of namespaces. All random choices come from ``draw``."""

    client: ClusterClient
    audit: Audit
    draw: random.Random
    namespaces: int
    wanted: dict[App, Wanted] = field(default_factory=dict)
    names: int = 0
    changes: int = 0

    # -- selection

    def any(self, charts: Container[str]) -> App | None:
        """Return a random Application with one of these charts."""
        found = [app for app, wanted in sorted(self.wanted.items()) if wanted.chart in charts]
        return self.draw.choice(found) if found else None

    def any_namespace(self) -> str:
        """Return a random namespace."""
        return f"team{self.draw.randrange(self.namespaces)}"

    def workload(self, app: App) -> ObjectKey:
        """Return the key of the Deployment or StatefulSet of an Application."""
        kind, plural = SCALED[self.wanted[app].chart]
        return ObjectKey(ResourceType("apps", "v1", kind, plural, namespaced=True), *app)

    async def any_pod(self) -> tuple[App, ObjectKey] | None:
        """Return a random Pod, and the Application that it belongs to."""
        app = self.any(SCALED)
        if app is None:
            return None
        pods = await self.client.list(POD, app[0], label_selector=f"app={app[1]}")
        names = sorted(find_str(pod, "metadata", "name") for pod in pods.items)
        return (app, ObjectKey(POD, app[0], self.draw.choice(names))) if names else None

    # -- actions

    async def scale(self, app: App, replicas: int) -> None:
        """Write the number of replicas, as an autoscaler does."""
        await self.client.merge_patch(self.workload(app), {"spec": {"replicas": replicas}}, subresource="scale")

    async def make_namespace(self, name: str) -> None:
        """Create a namespace."""
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def delete_namespace(self, name: str) -> None:
        """Delete a namespace with all its objects."""
        await self.client.delete(ObjectKey(NAMESPACE, "", name))
        for app in [app for app in self.wanted if app[0] == name]:
            self.audit.excused.add(app)  # no longer ready, because its namespace is terminating
            del self.wanted[app]

    async def create(self, namespace: str = "") -> None:
        """Create an Application in this namespace, or in a random one if none is given."""
        namespace = namespace or self.any_namespace()
        name = f"app{self.names}"
        self.names += 1
        wanted = Wanted(self.draw.choice(sorted(CHARTS)), self.draw.choice(VERSIONS), "first")
        obj = application(
            namespace,
            name,
            package=wanted.chart,
            version=wanted.version,
            repository=f"v{wanted.version}",
            settings={"text": wanted.text},
        )
        for made_by_the_server in ("uid", "generation"):
            find_object(obj, "metadata").pop(made_by_the_server)
        while True:
            try:
                await self.client.create(obj)
            except NotFoundError:
                await trio.sleep(1)  # the daemon has not created the CRD yet
            else:
                break
        self.audit.gone((namespace, name))
        self.wanted[namespace, name] = wanted

    async def change(self, app: App) -> None:
        """Change the settings of an Application."""
        wanted = self.wanted[app]
        wanted.text, wanted.drawn = f"text{self.changes}", ""
        self.changes += 1
        await self.client.merge_patch(ObjectKey(APPLICATION, *app), {"spec": {"settings": {"text": wanted.text}}})

    async def upgrade(self, app: App) -> None:
        """Change an Application to its other version."""
        wanted = self.wanted[app]
        wanted.version, wanted.drawn = next(one for one in VERSIONS if one != wanted.version), ""
        spec: JsonObject = {
            "packageVersion": wanted.version,
            "packageRepositoryName": f"v{wanted.version}",
        }
        await self.client.merge_patch(ObjectKey(APPLICATION, *app), {"spec": spec})

    async def remove(self, app: App) -> None:
        """Delete an Application."""
        del self.wanted[app]
        await self.client.delete(ObjectKey(APPLICATION, *app))
