"""What a package would have in the cluster: the request that its chart is rendered with, and what came of it.

Everything that a render depends on is in the request. Over what the chart says go the user's overrides of replicas and resources
(`spec.resourceRequests`), and under maintenance the label that says that nobody looks after the objects.
"""

from typing import Final

import trio

from wharfinger.cluster.object_waits import Laggards
from wharfinger.cluster.release import Release, ReleaseStatus
from wharfinger.formats.json_value import JsonObject, find_object
from wharfinger.packages.address import RepositoryAddress
from wharfinger.packages.errors import PackageError
from wharfinger.packages.renderer import Rendered, RenderRequest
from wharfinger.packages.resource_overrides import override_rendered
from wharfinger.packages.rewriting import rewritten
from wharfinger.packages.source import RegistrySource, source_text
from wharfinger.packages.values import RenderContext, helm_values
from wharfinger.queue.slots import Kind
from wharfinger.runtime.instance import Instance, Reporter, Tools

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
