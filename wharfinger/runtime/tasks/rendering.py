"""The request for a render of a package's chart, and the result: the objects that the package is to have in the cluster.

The request contains everything on which a render depends. Three kinds of changes are made to the result (`overlaid`): the
user's patches (`spec.patches`), the user's replicas and resources (`spec.resourceRequests`), and under maintenance a label that
says that the objects are not reconciled.

The render in a record of the release is used again as long as its inputs are the same, whatever these changes are
(:mod:`wharfinger.runtime.tasks.recorded_render`). There is one exception: if a chart looked up objects in the cluster, the
lookups may have other results now, so the chart is rendered again. Only its first render after a start of the daemon is taken
from the record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import Release, ReleaseStatus
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.cluster.watch.object_waits import Laggards, Progress
from wharfinger.cluster.watch.readiness import InProgress
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, checksum, find_str
from wharfinger.formats.listing import listed
from wharfinger.packages.definition.crd_files import read_crds
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.errors import PackageError
from wharfinger.packages.kustomizing.patched_render import patched
from wharfinger.packages.kustomizing.patches import patches_checksum
from wharfinger.packages.rendering.chart_use import ChartUse, chart_use
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest
from wharfinger.packages.rendering.resource_overrides import overrides_checksum
from wharfinger.packages.rendering.subchart_crds import has_subchart_crds, subchart_crds
from wharfinger.packages.settings.values import RenderContext
from wharfinger.queue.slots_machine import Kind
from wharfinger.runtime.lifecycle.package_state import PACKAGE_LABEL
from wharfinger.runtime.package.findings import ChartSearched
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.resources.manifests import (
    PackageValues,
    Platform,
    chart_request,
    registry_address,
    with_overrides,
)
from wharfinger.runtime.resources.recorded_inputs import RecordedInputs
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.recorded_render import (
    RENDER_LABEL,
    Recorded,
    has_looked,
    is_sealed,
    matching,
    of_revision,
    pack_base,
    read_recorded,
    render_inputs,
    seal,
    unsealed,
)

MAINTENANCE_LABEL: Final = "wharfinger.dev/maintenance"
SHOWN_LAGGARDS: Final = 5


async def is_left_to_users(instance: Instance, tools: Tools) -> bool:
    """Return whether the objects of the package are left to users, so that none of them is applied (spec/runtime §8.2).

    This is so if the package is in maintenance, and its deployed release was also applied in maintenance.
    """
    if not instance.desired.directives.maintenance:
        return False
    history = await tools.releases.history(instance.id.release, instance.id.namespace)
    return bool(history) and is_unmanaged(history[-1])


def is_unmanaged(release: Release) -> bool:
    """Return whether this revision was applied as a whole while its package was in maintenance."""
    return release.status is ReleaseStatus.DEPLOYED and release.labels.get(MAINTENANCE_LABEL) == "true"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request for a render, and the fingerprint of its inputs ("" if they have none).

    The request was made with ``directives``; the package may get newer directives before everything is applied.
    """

    request: RenderRequest
    inputs: str
    directives: Directives
    use: ChartUse
    layout: Layout

    @property
    def brought_by(self) -> str:
        """A common fingerprint of the inputs, of the changes to the rendered objects, and of the policy for the objects; "" if
        the inputs have no fingerprint.
        """
        if not self.inputs:
            return ""
        wanted = self.directives
        over, policy = overrides_checksum(wanted.overrides), wanted.release_policy.digest
        patched: list[JsonValue] = [patches_checksum(wanted.patches)] if wanted.patches else []
        return checksum([self.inputs, over, wanted.maintenance, policy, *patched])

    def fits(self, values: JsonObject) -> bool:
        """Return whether a request with ``values`` in place of its own values would have the same fingerprint of its inputs.
        Blocking.
        """
        try:
            inputs = render_inputs(replace(self.request, values=values), self.use, self.layout)
        except FormatError:
            return False
        return inputs == self.inputs


async def rendered(instance: Instance, tools: Tools, host: Host) -> Rendered:
    """Return the manifests that an apply would use now. Raises PackageError or ClusterError."""
    history = await tools.releases.history(instance.id.release, instance.id.namespace)
    wanted = await wanted_render(instance, tools, host, history)
    found = await recorded(wanted, instance, tools, history)
    bare = found.rendered if found is not None else await render(wanted.request, instance, tools)
    return (await overlaid(bare, wanted.directives, instance.id.name, tools)).rendered


async def wanted_render(instance: Instance, tools: Tools, host: Host, history: Sequence[Release]) -> Wanted:
    """Return the request for the render that the package's present state needs. Raises PackageError or ClusterError."""
    directives = instance.desired.directives
    deployed = any(release.status is ReleaseStatus.DEPLOYED for release in history)
    request = await render_request(instance, tools, host, upgrade=deployed)
    use = await _chart_use(instance, tools, host)
    layout = instance.loaded().layout
    try:
        inputs = await trio.to_thread.run_sync(render_inputs, request, use, layout)
    except FormatError:
        inputs = ""
    return Wanted(request, inputs, directives, use, layout)


async def recorded(
    wanted: Wanted, instance: Instance, tools: Tools, history: Sequence[Release], *, unchanged: bool = False
) -> Recorded | None:
    """Return the render that a record of the release contains for the inputs of ``wanted``; None if no record has one.

    Normally, a record is used only if it has a valid seal of these inputs. But if ``unchanged`` is True (the requested state
    was already applied), the last revision needs no seal, only the same values. Raises PackageError or ClusterError.
    """
    release = await _newest_sealed(wanted, instance, tools, history)
    if release is not None:
        return await trio.to_thread.run_sync(_read, instance, release, wanted.request)
    last = unsealed(history) if unchanged else None
    return await trio.to_thread.run_sync(_adopted, instance, last, wanted) if last is not None else None


async def _newest_sealed(
    wanted: Wanted, instance: Instance, tools: Tools, history: Sequence[Release]
) -> Release | None:
    """Return the newest record that was rendered from the wanted inputs, and whose content matches its seal; None if there is
    none. A seal that Helm copied to a user's revision matches only if that revision has the same manifest.

    If the package is rolled back to a revision, the record of this revision is preferred.
    """
    back = wanted.directives.rolled_back
    for found in of_revision(history, back.revision, wanted.inputs) if back is not None and wanted.inputs else ():
        release = await tools.releases.whole(found)
        if release is not None and await trio.to_thread.run_sync(is_sealed, release):
            return release
    for found in matching(history, wanted.inputs) if wanted.inputs else ():
        is_first_look = (
            not instance.applied.verified and found is history[-1] and found.status is ReleaseStatus.DEPLOYED
        )
        if has_looked(found) and not is_first_look:
            return None
        release = await tools.releases.whole(found)
        if release is not None and await trio.to_thread.run_sync(is_sealed, release):
            return release
    return None


async def apply_subchart_crds(instance: Instance, tools: Tools, wanted: Wanted, progress: Progress) -> bool:
    """Apply the CRDs of the chart's subcharts, and wait until they are established; return whether there are any.

    `helm install` does the same before it renders, because templates may check whether kinds exist, or look up objects.
    Raises PackageError or ClusterError.
    """
    request, releases = wanted.request, tools.releases
    find = partial(subchart_crds, request.chart, request.values, is_package=request.chart_file is not None)
    async with tools.slots.use(Kind.LOAD, instance.id.name):
        crds = await trio.to_thread.run_sync(find, abandon_on_cancel=True)
    drift = drift_of(wanted.directives)
    await releases.ensure_crds(
        request.release, request.namespace, crds, step="charts in the chart", drift=drift, progress=progress
    )
    return bool(crds)


def _read(instance: Instance, release: Release, request: RenderRequest) -> Recorded:
    crds = read_crds(request.chart) if instance.loaded().crds else ()
    more = subchart_crds(request.chart, request.values, is_package=request.chart_file is not None)
    return read_recorded(release, (*crds, *more))


def _adopted(instance: Instance, release: Release, wanted: Wanted) -> Recorded | None:
    """Read the render in a release record that has no seal. Return it with the seal that the record should have, or None if the
    render was not made from the wanted inputs.

    The seal is empty if there were overrides, because the record does not have the render before overrides.
    """
    looked = wanted.use.may_look_up(wanted.request.values) if wanted.inputs else False
    if not wanted.fits(release.values) or (looked and instance.applied.verified):
        return None
    found = _read(instance, release, wanted.request)
    render = replace(found.rendered, looked=looked)
    said = wanted.directives
    is_bare = not said.overrides and not said.patches and not said.maintenance
    label = seal(wanted.inputs, render) if is_bare and wanted.inputs else ""
    return replace(found, rendered=render, label=label)


async def _chart_use(instance: Instance, tools: Tools, host: Host) -> ChartUse:
    """Return the inputs that the chart's templates can read. The templates are searched only once, and the result is kept."""
    digest, tree = instance.fetched().descriptor.digest.text, instance.files.tree
    if tree is None:
        raise PackageError(f"package {instance.desired.package} is not unpacked")
    searched = instance.files.chart_use
    if searched is None or searched[0] != digest:
        is_package = instance.loaded().chart_file is not None
        use = tools.contents.chart_uses.get((digest, is_package))
        if use is None:
            look = partial(chart_use, tree, is_package=is_package)
            async with tools.slots.use(Kind.LOAD, instance.id.name):
                use = await trio.to_thread.run_sync(look, abandon_on_cancel=True)
            tools.contents.chart_uses.keep((digest, is_package), use)
        host.emit(instance, ChartSearched(digest, use))
        return use
    return searched[1]


async def render(request: RenderRequest, instance: Instance, tools: Tools) -> Rendered:
    """Make the render that ``request`` describes. Raises PackageError."""
    async with tools.slots.use(Kind.RENDER, instance.id.name):
        return await tools.renderer.render(request)


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A render with patches and overrides; ``unmatched`` are the overrides for which the chart has no workload or container."""

    rendered: Rendered
    unmatched: tuple[str, ...] = ()


async def overlaid(found: Rendered, wanted: Directives, package: str, tools: Tools) -> Overlaid:
    """Apply the user's patches and overrides, and the changes for maintenance, to a render. Raises PackageError."""
    if wanted.patches:
        async with tools.slots.use(Kind.RENDER, package):
            found = await patched(found, wanted.patches, tools.kustomize)
    if not wanted.overrides and not wanted.maintenance:
        return Overlaid(found)
    return Overlaid(*await trio.to_thread.run_sync(with_overrides, found, wanted))


async def render_request(instance: Instance, tools: Tools, host: Host, *, upgrade: bool) -> RenderRequest:
    """Return the current request for rendering the package's chart. Raises PackageError or ClusterError."""
    definition, tree = instance.loaded(), instance.files.tree
    if tree is None or definition.chart is None:
        raise PackageError(f"package {instance.desired.package} has no Helm chart")
    context = RenderContext(
        name=instance.id.release,
        namespace=instance.id.namespace,
        registry=registry_address(instance.desired.source),
        version=instance.desired.version,
        digest=instance.fetched().descriptor.digest.text,
    )
    platform = Platform(await tools.cluster.server_version(), await tools.cluster.api_versions())
    return chart_request(
        definition,
        tree,
        context,
        PackageValues(host.global_values(), instance.configuration.settings, instance.configuration.values),
        platform,
        upgrade=upgrade,
        confined=tools.releases.is_confined(Owner(instance.id.release, instance.id.namespace)),
        reader=instance.account.user if instance.account is not None else "",
    )


def recorded_inputs(instance: Instance) -> RecordedInputs:
    """Return the package, version, digest and settings to store with the next revision. Must be called after Download."""
    inputs, directives = instance.desired, instance.desired.directives
    return RecordedInputs(
        package=inputs.package,
        version=inputs.version,
        digest=instance.fetched().descriptor.digest.text,
        settings=inputs.settings.settings,
        settings_version=inputs.settings.version,
        hidden=inputs.settings.hidden,
        overrides=directives.overrides,
        patches=directives.patches,
    )


def drift_of(wanted: Directives) -> DriftPolicy:
    """Return the drift policy. In maintenance, drift is not checked."""
    return (
        replace(wanted.release_policy.drift, mode=DriftMode.OFF) if wanted.maintenance else wanted.release_policy.drift
    )


def new_recorded(wanted: Wanted, found: Rendered) -> Recorded:
    """Return a render that is in no record yet, with the seal for its record. Raises ReleaseError."""
    return Recorded(found, wanted.request.values, seal(wanted.inputs, found) if wanted.inputs else "")


def release_request(
    wanted: Wanted, found: Recorded, over: Rendered, definition: Definition, instance: Instance, stamp: str = ""
) -> ReleaseRequest:
    """Return the request for the release engine. ``found`` is the render, and ``over`` is the same render after the overrides
    were applied. Blocking. Raises ReleaseError.
    """
    request, directives = wanted.request, wanted.directives
    labels = {PACKAGE_LABEL: instance.id.name}
    if directives.maintenance:
        labels[MAINTENANCE_LABEL] = "true"
    changed = (over.manifest, over.hooks) != (found.rendered.manifest, found.rendered.hooks)
    return ReleaseRequest(
        name=request.release,
        namespace=request.namespace,
        chart=definition.recorded_chart,
        values=found.values,
        manifest=over.manifest,
        crds=over.crds,
        objects=over.objects,
        hooks=over.hooks,
        labels=labels,
        inputs=recorded_inputs(instance).encoded(),
        rollback_to=directives.rolled_back.revision if directives.rolled_back is not None else 0,
        marks={RENDER_LABEL: found.label} if found.label else {},
        base=(found.base or pack_base(found.rendered)) if changed and found.label else b"",
        notes=over.notes,
        drift=drift_of(directives),
        health=directives.release_policy.health,
        prune_to_empty=directives.release_policy.allow_empty,
        stamp=stamp,
    )


async def recorded_request(
    wanted: Wanted, definition: Definition, instance: Instance, history: Sequence[Release]
) -> ReleaseRequest | None:
    """Return the release request that an earlier process made for these inputs. It is made again from the release record,
    without parsing the manifest.

    Return None if this process has already checked the release, if the last revision was not made from these inputs, or if more
    than the manifest in the record was applied: hooks, CRDs, overrides, patches, or the changes for maintenance.
    """
    directives, request = wanted.directives, wanted.request
    last = next(matching(history, wanted.inputs), None) if wanted.inputs else None
    if last is None or last is not history[-1] or instance.applied.verified or not last.whole:
        return None
    if directives.rolled_back is not None or directives.overrides or directives.patches or directives.maintenance:
        return None
    if definition.crds or last.hooks or last.base or last.status is not ReleaseStatus.DEPLOYED:
        return None
    if not await trio.to_thread.run_sync(_is_whole_render, last, request.chart):
        return None
    return ReleaseRequest(
        name=request.release,
        namespace=request.namespace,
        chart=definition.recorded_chart,
        values=last.values,
        manifest=last.manifest,
        labels={PACKAGE_LABEL: instance.id.name},
        inputs=recorded_inputs(instance).encoded(),
        marks={RENDER_LABEL: last.labels[RENDER_LABEL]},
        notes=find_str(last.document, "info", "notes"),
        drift=drift_of(directives),
        health=directives.release_policy.health,
        prune_to_empty=directives.release_policy.allow_empty,
    )


def _is_whole_render(release: Release, chart: Path) -> bool:
    """Return whether the render in a record matches its seal (a checksum), and no subchart of the chart may have CRDs.
    Blocking.
    """
    return is_sealed(release) and not has_subchart_crds(chart)


def of_foreign_revision(revision: int, by: str) -> str:
    """Return the warning about a revision that another writer made or removed."""
    return (
        f"release: {by} changed the release last (revision {revision}), so the daemon does not change the release "
        "until the package changes, or until the annotation wharfinger.dev/force-requested-at requests it"
    )


def is_of_revision(warning: str, revision: int) -> bool:
    """Return whether a warning is about this revision."""
    return f"(revision {revision})" in warning


def applying_reason(laggards: Laggards, reason: str) -> str:
    """Return the reason to report while an apply waits for these objects: DefinitionsNotEstablished if the API server takes too
    long to establish a CRD, otherwise ``reason``.
    """
    overdue = any(isinstance(state, InProgress) and state.overdue for state in laggards.values())
    return Reason.DEFINITIONS_NOT_ESTABLISHED if overdue else reason


def waiting_for(laggards: Laggards) -> str:
    """Return a text such as ``Deployment.apps prod/web: 1 of 2 available; ...``, with at most SHOWN_LAGGARDS objects,
    sorted.
    """
    lines = [f"{key}: {state.message}" for key, state in sorted(laggards.items())]
    return listed(lines, SHOWN_LAGGARDS, "; ")
