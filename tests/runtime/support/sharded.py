"""Several daemons with one control plane. Each daemon has its own shard."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from tests.packages.support.charts import chart
from tests.runtime.support.world import Ground, World
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.store.disk_store import open_store
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.resources.resources import APPLICATION
from wharfinger.runtime.shards.ownership import SHARD_LABEL
from wharfinger.runtime.shards.seizure import Seizures

KEY = ObjectKey(APPLICATION, "prod", "app")


@asynccontextmanager
async def open_shard(ground: Ground, shard: str, seizures: Seizures | None = None) -> AsyncIterator[World]:
    """Run another daemon, which manages a shard and has its own folder."""
    folder = ground.folder / (shard or "main")
    folder.mkdir(exist_ok=True)
    async with (
        open_store(folder / "state") as store,
        replace(
            ground, store=store, journal=Journal(None), renders=folder / "renders", shard=shard, seizures=seizures
        ).open_world() as world,
    ):
        yield world


async def label(world: World, shard: str | None, namespace: str = "prod") -> None:
    """Set the label that names the shard of a namespace. None removes the label."""
    patch: JsonObject = {"metadata": {"labels": {SHARD_LABEL: shard}}}
    await world.client.merge_patch(ObjectKey(NAMESPACE, "", namespace), patch)


def kept_by(obj: JsonObject, shard: str) -> bool:
    return find_str(obj, "status", "shard") == shard and find_str(obj, "status", "summary", "state") == "Ready"


PAGE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-page}
data: {text: {{ .Values.text | default "none" }}}
"""


async def prepared(world: World) -> None:
    """Write the package ``page`` into a folder, and create a PackageRepository for this folder."""
    chart(world.folder / "packages" / "page", "page", "1.0.0", {"templates/config.yaml": PAGE})
    await world.local_repository(world.folder / "packages")


async def versions(world: World) -> tuple[str, str, int]:
    """Return the resource version and the uid of the chart's ConfigMap, and the number of records of the release."""
    page = await world.config_map("prod", "app-page")
    assert page is not None
    resource = await world.client.resource_type("v1", "Secret")
    records = (await world.client.list(resource, "prod", label_selector="owner=helm")).items
    return find_str(page, "metadata", "resourceVersion"), find_str(page, "metadata", "uid"), len(records)
