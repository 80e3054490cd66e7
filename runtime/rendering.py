"""What a package would have in the cluster: the request that its chart is rendered with, and what came of it.

Everything that a render depends on is in the request. Over what the chart says go the user's overrides of replicas and resources
(`spec.resourceRequests`), and under maintenance the label that says that nobody looks after the objects.
"""

import hashlib
from dataclasses import replace
from typing import Final

import trio

from wharfinger.cluster.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.object_waits import Laggards
from wharfinger.cluster.release import Release, ReleaseStatus
from wharfinger.cluster.release_request import ReleaseRequest
from wharfinger.formats.json_value import JsonObject, encode_json, find_object
from wharfinger.packages.address import RepositoryAddress
from wharfinger.packages.definition import Definition
from wharfinger.packages.errors import PackageError
from wharfinger.packages.renderer import Rendered, RenderRequest
from wharfinger.packages.resource_overrides import override_rendered, overrides_checksum
from wharfinger.packages.rewriting import rewritten
from wharfinger.packages.source import RegistrySource, source_text
from wharfinger.packages.values import RenderContext, helm_values
from wharfinger.queue.slots import Kind
from wharfinger.runtime.instance import Instance, Reporter, Tools
from wharfinger.runtime.package_state import PACKAGE_LABEL
from wharfinger.runtime.resources import Directives

MAINTENANCE_LABEL: Final = "wharfinger.dev/maintenance"
UNMANAGED_LABEL: Final = "wharfinger.dev/no-resource-reconciliation"
SHOWN_LAGGARDS: Final = 5


async def left_to_people(instance: Instance, tools: Tools) -> bool:
    """Whether nothing of the package is to be applied: it is under maintenance, and its objects say so (spec/runtime §8.2)."""
    if not instance.wanted.maintenance:
        return False
    history = await tools.releases.history(instance.id.release, instance.id.namespace)
    return bool(history) and is_unmanaged(history[-1])


def is_unmanaged(release: Release) -> bool:
    """It was applied under maintenance, to its end."""
    return release.status is ReleaseStatus.DEPLOYED and release.labels.get(MAINTENANCE_LABEL) == "true"


async def rendered(instance: Instance, tools: Tools, reporter: Reporter) -> Rendered:
    """The manifests that the package would have now. Raises PackageError or ClusterError."""
    history = await tools.releases.history(instance.id.release, instance.id.namespace)
    return await render(await render_request(instance, tools, reporter, upgrade=bool(history)), instance, tools)


async def render(request: RenderRequest, instance: Instance, tools: Tools) -> Rendered:
    """Render a request, and put over it what the user and the maintenance say. Raises PackageError."""
    async with tools.slots.use(Kind.RENDER, instance.id.name):
        found = await tools.renderer.render(request)
        found, instance.unmatched = await trio.to_thread.run_sync(override_rendered, found, instance.wanted.overrides)
    if instance.wanted.maintenance:
        found = await trio.to_thread.run_sync(rewritten, found, _unmanaged)
    return found


async def render_request(instance: Instance, tools: Tools, reporter: Reporter, *, upgrade: bool) -> RenderRequest:
    """What the package's chart is rendered with now. Raises PackageError or ClusterError."""
    definition, tree = instance.loaded(), instance.tree
    if tree is None or definition.chart is None:
        raise PackageError(f"package {instance.package} has no Helm chart")
    digest = instance.fetched().descriptor.digest.text
    context = RenderContext(
        name=instance.id.release,
        namespace=instance.id.namespace,
        registry=_registry(instance),
        version=instance.version,
        digest=digest,
    )
    values = helm_values(definition, context, reporter.global_values(), instance.settings, instance.values)
    return RenderRequest(
        chart=tree,
        chart_digest=digest,
        release=instance.id.release,
        namespace=instance.id.namespace,
        values=values,
        kube_version=await tools.cluster.server_version(),
        api_versions=await tools.cluster.api_versions(),
        is_upgrade=upgrade,
        chart_file=definition.chart_file,
    )


def inputs_of(request: RenderRequest, wanted: Directives) -> str:
    """Equal for what renders to the same and is kept in the same way; whether it is an install or an upgrade does not count."""
    made = hashlib.blake2b(digest_size=16)
    parts: JsonObject = {
        "chart": [request.chart_digest, request.chart_file],
        "release": [request.release, request.namespace],
        "values": request.values,
        "kubernetes": [request.kube_version, *request.api_versions],
        "wanted": [overrides_checksum(wanted.overrides), wanted.maintenance, wanted.upkeep.digest],
    }
    made.update(encode_json(parts))
    return made.hexdigest()


def drift_of(wanted: Directives) -> DriftPolicy:
    """How drift is treated: what is left to people is not looked at."""
    return replace(wanted.upkeep.drift, mode=DriftMode.OFF) if wanted.maintenance else wanted.upkeep.drift


def release_request(
    request: RenderRequest, found: Rendered, definition: Definition, instance: Instance
) -> ReleaseRequest:
    """What the release engine is asked for."""
    maintenance = {MAINTENANCE_LABEL: "true"} if instance.wanted.maintenance else {}
    return ReleaseRequest(
        name=request.release,
        namespace=request.namespace,
        chart=definition.recorded_chart,
        values=request.values,
        manifest=found.manifest,
        crds=found.crds,
        objects=found.objects,
        hooks=found.hooks,
        labels={PACKAGE_LABEL: instance.id.name, **maintenance},
        notes=found.notes,
        drift=drift_of(instance.wanted),
        health=instance.wanted.upkeep.health,
        prune_to_empty=instance.wanted.upkeep.allow_empty,
    )


def of_foreign_revision(revision: int, by: str) -> str:
    """What is told of a revision that somebody else made, or took away."""
    return (
        f"release: {by} had it last (revision {revision}), not Wharfinger; it is left as it is until the package changes, or "
        "the annotation wharfinger.dev/force-requested-at asks for it"
    )


def is_of_revision(warning: str, revision: int) -> bool:
    """Whether that is what a warning is about."""
    return f"(revision {revision})" in warning


def waiting_for(laggards: Laggards) -> str:
    """``Deployment.apps prod/web: 1 of 2 available; ...``, sorted, at most SHOWN_LAGGARDS of them."""
    lines = [f"{key}: {state.message}" for key, state in sorted(laggards.items())]
    more = len(lines) - SHOWN_LAGGARDS
    return "; ".join(lines[:SHOWN_LAGGARDS]) + (f"; and {more} more" if more > 0 else "")


def _unmanaged(obj: JsonObject) -> JsonObject:
    metadata = find_object(obj, "metadata")
    labels: JsonObject = {**find_object(metadata, "labels"), UNMANAGED_LABEL: ""}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def _registry(instance: Instance) -> str:
    source = instance.source
    if isinstance(source, RegistrySource):
        address: RepositoryAddress = source.address
        return str(address)
    return source_text(source) if source is not None else ""
