"""A package in two versions, for tests of rollbacks."""

from collections.abc import Mapping
from typing import Final

from tests.runtime.support.world import World
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey

JOB: Final = (
    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: %s\n  annotations: {%s wharfinger.dev/fail: 'true'}\n"
    "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"
)
DEPLOYMENT: Final = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop, annotations: {%s}}\n"
    "spec:\n  selector: {matchLabels: {app: %s}}\n"
    "  template:\n    metadata: {labels: {app: %s, version: '%s'}%s}\n"
    "    spec: {containers: [{name: a, image: 'registry.example/web:1'}]}\n"
)
DRAWN: Final = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-drawn}\n"
    "stringData: {password: {{ randAlphaNum 9 }}}\n"
)
CLAIM: Final = (
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}\n"
)
LIMITS: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits}\nimmutable: %s\ndata: {most: '%s'}\n"


def deployment(*, selector: str = "shop", version: str = "1", of_pod: str = "", more: str = "") -> str:
    return DEPLOYMENT % (more, selector, selector, version, f", annotations: {{{of_pod}}}" if of_pod else "")


async def install(world: World, old: Mapping[str, str], *, more: JsonObject | None = None) -> str:
    """Install version 1.0.0 with a setting, and return the password that its chart generated."""
    await world.push("web", "1.0.0", {"templates/drawn.yaml": DRAWN, **old})
    await world.repository()
    upgrade: JsonObject = {"upgrade": {"rollbackOnFailure": True, "retries": 0, **(more or {})}}
    await world.create("prod", "shop", settings={"text": "first"}, more=upgrade)
    await world.until_state("prod", "shop", "Ready")
    return await password(world)


async def password(world: World) -> str:
    key = ObjectKey(await world.client.resource_type("v1", "Secret"), "prod", "shop-drawn")
    return find_str(await world.client.get(key), "data", "password")


async def text(world: World) -> str:
    found = await world.config_map("prod", "shop")
    return find_str(found or {}, "data", "text")


async def revisions(world: World) -> list[tuple[int, str, str]]:
    history = await world.runtime.tools.releases.history("shop", "prod")
    return [(one.revision, str(one.status), one.description) for one in history]
