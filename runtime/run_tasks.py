"""Run → WaitReady, and the way back: Disable, Uninstall, Undeploy.

Run: beforeHelm hooks, render with the real Helm, apply as one release, afterHelm hooks; as long as afterHelm hooks change the
values, once more, up to MAX_ROUNDS, after which the loop is named instead of being run for ever (spec/runtime §13 item 17).
Disabling puts hooks to rest; taking the release away with them or not is what tells a pause from an uninstall.
"""

import logging
from typing import Final

import trio

from wharfinger.cluster.object_waits import Laggards, wait_ready
from wharfinger.cluster.release import ReleaseStatus
from wharfinger.cluster.release_engine import ReleaseRequest
from wharfinger.formats.json_value import checksum
from wharfinger.packages.address import RepositoryAddress
from wharfinger.packages.definition import Definition
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import PackageError
from wharfinger.packages.renderer import Rendered, RenderRequest
from wharfinger.packages.source import RegistrySource, source_text
from wharfinger.packages.values import RenderContext, helm_values
from wharfinger.queue.service import TaskFailed
from wharfinger.runtime.bring_tasks import read_package
from wharfinger.runtime.failures import EXPECTED, ValuesLoopError, WorkloadError
from wharfinger.runtime.identity import IdentityError, PackageId
from wharfinger.runtime.instance import Instance, Reporter, Tools
from wharfinger.runtime.package_state import PACKAGE_LABEL, state_record
from wharfinger.runtime.start_tasks import bound_hooks, rest_hooks, run_bound
from wharfinger.runtime.status import Stage
from wharfinger.runtime.values import values_of

log = logging.getLogger(__name__)

SHOWN_LAGGARDS: Final = 5
MAX_ROUNDS: Final = 5


async def run(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Bring what the values say into the cluster, hooks before and after. A package without a chart has hooks only."""
    definition = instance.loaded()
    if definition.chart is None and not instance.hooks:
        reporter.released(instance, 0)
        return
    await run_bound(instance, tools, reporter, "beforeHelm")
    for _ in range(MAX_ROUNDS):
        instance.dirty = False  # what event hooks change from here on needs another run
        rendered_from = checksum(instance.values)
        if definition.chart is not None:
            await _apply(instance, tools, reporter, definition)
        else:
            reporter.released(instance, 0)
        await run_bound(instance, tools, reporter, "afterHelm")
        if checksum(instance.values) == rendered_from:
            return
        log.info("%s: afterHelm hooks changed the values; applying again", instance.id)
    raise ValuesLoopError(
        f"afterHelm hooks of {instance.package} {instance.version} changed the values {MAX_ROUNDS} times in a row; "
        "a hook must come to rest when nothing else changes"
    )


async def render(instance: Instance, tools: Tools, reporter: Reporter) -> Rendered:
    """The manifests that the package would have now. Raises PackageError or ClusterError."""
    history = await tools.releases.history(instance.id.release, instance.id.namespace)
    return await tools.renderer.render(await _render_request(instance, tools, reporter, upgrade=bool(history)))


async def await_ready(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Wait until what was applied is ready, naming the laggards. No limit of its own: a new wish or the end interrupts it."""

    def progress(laggards: Laggards) -> None:
        if laggards:
            reporter.progressed(instance, Stage.SCALED, "NotReady", waiting_for(laggards))

    with trio.CancelScope() as wait:
        forget = tools.stopping.on_cancel(wait.cancel)
        try:
            report = await wait_ready(tools.cluster, instance.objects, progress=progress)
        finally:
            forget()
        if report.failed:
            raise WorkloadError(waiting_for(report.failed))
    if wait.cancelled_caught:
        raise TaskFailed(f"stopped waiting: {tools.stopping.cause}")


def waiting_for(laggards: Laggards) -> str:
    """``Deployment.apps prod/web: 1 of 2 available; ...``, sorted, at most SHOWN_LAGGARDS of them."""
    lines = [f"{key}: {state.message}" for key, state in sorted(laggards.items())]
    more = len(lines) - SHOWN_LAGGARDS
    return "; ".join(lines[:SHOWN_LAGGARDS]) + (f"; and {more} more" if more > 0 else "")


async def pause(instance: Instance, tools: Tools, _reporter: Reporter) -> None:
    """Disable, keeping the release: hooks rest, what is in the cluster stays."""
    await rest_hooks(instance, tools)


async def take_away(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Disable, and the release with it; what is loaded stays loaded, to be enabled again."""
    await _uninstall(instance, tools, reporter, during_removal=False)
    reporter.uninstalled(instance)


async def uninstall(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Take the release away, for good. No release, or none that we ever wrote, is success."""
    if instance.definition is None and has_release(instance.id):
        await _load_for_removal(instance, tools)
    await _uninstall(instance, tools, reporter, during_removal=True)


async def undeploy(instance: Instance, tools: Tools, _reporter: Reporter) -> None:
    """Take the package off the disk (what no other package uses is collected) and forget what was recorded of it."""
    await tools.store.undeploy(instance.id.name)
    await tools.store.collect()
    if has_release(instance.id):
        await state_record(tools.cluster, instance.id).delete()  # whether it can be read or not


def has_release(identity: PackageId) -> bool:
    """Whether it can ever have been installed: not under a name that Helm refuses."""
    try:
        return bool(identity.release)
    except IdentityError:
        return False


async def _apply(instance: Instance, tools: Tools, reporter: Reporter, definition: Definition) -> None:
    if definition.chart is None:
        raise AssertionError(f"{instance.id}: there is nothing to apply")
    reporter.progressed(instance, Stage.APPLIED, "ApplyingManifests", "rendering the chart")
    history = await tools.releases.history(instance.id.release, instance.id.namespace)
    deployed = any(release.status is ReleaseStatus.DEPLOYED for release in history)
    request = await _render_request(instance, tools, reporter, upgrade=deployed)
    rendered = await tools.renderer.render(request)
    reporter.progressed(instance, Stage.APPLIED, "ApplyingManifests", f"applying {len(rendered.objects)} objects")

    def progress(laggards: Laggards) -> None:
        if laggards:
            reporter.progressed(instance, Stage.APPLIED, "ApplyingManifests", waiting_for(laggards))

    result = await tools.releases.upgrade(
        ReleaseRequest(
            name=request.release,
            namespace=request.namespace,
            chart=definition.chart.metadata,
            values=request.values,
            manifest=rendered.manifest,
            crds=rendered.crds,
            objects=rendered.objects,
            hooks=rendered.hooks,
            labels={PACKAGE_LABEL: instance.id.name},
        ),
        progress=progress,
    )
    instance.objects = result.objects
    reporter.released(instance, result.revision)


async def _render_request(instance: Instance, tools: Tools, reporter: Reporter, *, upgrade: bool) -> RenderRequest:
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


def _registry(instance: Instance) -> str:
    source = instance.source
    if isinstance(source, RegistrySource):
        address: RepositoryAddress = source.address
        return str(address)
    return source_text(source) if source is not None else ""


async def _uninstall(instance: Instance, tools: Tools, reporter: Reporter, *, during_removal: bool) -> None:
    def progress(laggards: Laggards) -> None:
        if laggards and during_removal:
            reporter.removing(instance, "Removing", f"waiting until it is gone: {waiting_for(laggards)}")

    if instance.hook_scope is not None:
        instance.hook_scope.cancel("the package is being uninstalled")
    if not has_release(instance.id):
        return
    name, namespace = instance.id.release, instance.id.namespace
    history = await tools.releases.history(name, namespace)
    ours = any(
        release.holder == tools.holder and release.labels.get(PACKAGE_LABEL, instance.id.name) == instance.id.name
        for release in history
    )

    async def run_hooks(binding: str) -> None:
        hooks = bound_hooks(instance.hooks, binding)
        if not hooks or instance.skip_delete_hooks:
            return
        if during_removal:
            names = ", ".join(hook.name for hook in hooks)
            reporter.removing(instance, "Removing", f"running its {binding} hooks: {names}")
        await run_bound(instance, tools, reporter, binding)

    if ours:
        await run_hooks("beforeDeleteHelm")
        await tools.releases.uninstall(name, namespace, progress=progress)
    if ours or instance.status.version:
        await run_hooks("afterDeleteHelm")
    await rest_hooks(instance, tools)
    instance.objects = ()


async def _load_for_removal(instance: Instance, tools: Tools) -> None:
    """After a restart: what is to be removed has hooks, too. What cannot be read any more does not hold the removal up."""
    try:
        state = (await instance.recorded(tools.cluster)).state
        manifest = await tools.store.installed(Digest(state.digest)) if state.digest else None
        if manifest is None:
            return
        instance.package, instance.version = state.source.rpartition(" ")[2], state.version
        instance.manifest, instance.tree = manifest, await tools.store.install(manifest)
        await tools.store.deploy(instance.id.name, manifest)  # until Undeploy
        await read_package(instance, tools)
        instance.configured, instance.values = instance.wanted_settings, values_of(instance)
    except EXPECTED as error:
        instance.hooks = ()
        log.warning("%s: removed without its hooks: %s", instance.id, instance.masked(str(error)))
