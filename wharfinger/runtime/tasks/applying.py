"""The apply of a package's chart: the chart is rendered if its inputs have changed, and the result is applied as one release.
If nothing has changed, both steps are skipped.

An applied release is identified by its inputs (everything on which a render depends, except the kind of the operation, install
or upgrade) and by the release engine's fingerprint of the result. While the inputs and the fingerprint are unchanged, helm is
not run, and no request is made to the API server. A restarted daemon finds the inputs in the record of the release, and checks
the objects without rendering the chart again. A revision that a user made with helm is kept until a new state is requested.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import trio

from wharfinger.cluster.api.endpoints import KINDS as ENDPOINT_KINDS
from wharfinger.cluster.api.endpoints import endpoint_urls
from wharfinger.cluster.api.interruption import WaitInterruptedError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import Release, ReleaseStatus
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import counted, listed
from wharfinger.kube.resource import kind_of, name_of
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.settings.unread_settings import unread_settings
from wharfinger.queue.task import TaskFailed
from wharfinger.runtime.package.events import Progressed, Reachable, Released, Tracked, WarnedOf
from wharfinger.runtime.package.findings import ChartApplied, ObjectsKnown, OverridesMatched
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.package.state import Brought
from wharfinger.runtime.package.stoppable import waiting
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.tasks.recorded_render import has_looked
from wharfinger.runtime.tasks.rendering import (
    Wanted,
    apply_subchart_crds,
    applying_reason,
    drift_of,
    is_of_revision,
    is_unmanaged,
    new_recorded,
    of_foreign_revision,
    overlaid,
    recorded,
    recorded_request,
    release_request,
    render,
    waiting_for,
    wanted_render,
)

ROLLBACK: Final = "rollback"
"""The subject of warnings about upgrades that cannot be rolled back."""
SHOWN_CHANGES: Final = 3
UNREAD: Final = "unreadSettings"
"""The subject of warnings about settings that no template reads."""
LEFT_TO_PEOPLE: Final = (
    "spec.maintenance: nothing is applied; changes of the settings and the version wait until the maintenance ends"
)


async def applied_before(instance: Instance, tools: Tools, done: str | None) -> str | None:
    """Return ``done`` if the cluster still has the revision that it names; otherwise None.

    ``done`` is the journal's note of a revision that an earlier process applied; None if there is no note. Later revisions do
    not matter if the daemon made all of them: a run may apply the chart in several passes
    (:mod:`~wharfinger.runtime.tasks.run_tasks`), and each pass can make a revision.
    """
    if done is None:
        return None
    revision = int(done.partition(" ")[0])
    history = await tools.releases.history(instance.id.release, instance.id.namespace)
    since = [release for release in history if release.revision >= revision]
    ours = bool(since) and all(release.holder for release in since)
    there = ours and since[0].revision == revision
    return done if there and since[0].status in {ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED} else None


async def apply(
    instance: Instance,
    tools: Tools,
    host: Host,
    definition: Definition,
    *,
    start: Callable[[], None],
    unchanged: bool,
    stamp: str = "",
) -> int:
    """Render and apply the chart unless nothing has changed; return the deployed revision.

    ``start`` is called before the chart is rendered or applied, and is not called if nothing has changed. If the release gets a
    new revision, ``stamp`` is written to the revision's record; see `wharfinger.runtime.lifecycle.applied_stamp`.
    """
    if definition.chart is None:
        raise AssertionError(f"{instance.id}: there is nothing to apply")
    owner = Owner(instance.id.release, instance.id.namespace)
    history = await tools.releases.history(owner.name, owner.namespace)
    last = history[-1] if history else None
    if instance.desired.directives.maintenance and last is not None and is_unmanaged(last):
        host.emit(
            instance, ObjectsKnown(())
        )  # `Released` is not reported, so that the status keeps the installed version
        host.emit(instance, WarnedOf("maintenance", (LEFT_TO_PEOPLE,)))
        return last.revision
    host.emit(instance, WarnedOf("maintenance", ()))
    if unchanged and last is not None and not last.holder and last.status is ReleaseStatus.DEPLOYED:
        host.emit(instance, ObjectsKnown(await tools.releases.objects(owner.name, owner.namespace)))
        told = of_foreign_revision(last.revision, str(last.written_by))
        if not any(is_of_revision(warning, last.revision) for warning in instance.warnings.get("release", ())):
            host.emit(instance, WarnedOf("release", (told,)))
        return last.revision
    wanted = await wanted_render(instance, tools, host, history)
    _warn_of_unread(instance, host, wanted)
    inputs, known = wanted.brought_by, instance.applied.brought
    same = known is not None and known.inputs == inputs
    applied = tools.releases.as_applied(owner, known.fingerprint) if known is not None and same else None
    if applied is not None:
        # The version of the package may have changed, although its chart has not.
        host.emit(instance, Released(applied.revision))
        return applied.revision
    if unchanged and (revision := await _confirmed(instance, tools, host, definition, wanted, history)) is not None:
        return revision
    start()
    return await _apply_render(instance, tools, host, definition, wanted, history, unchanged=unchanged, stamp=stamp)


async def _apply_render(
    instance: Instance,
    tools: Tools,
    host: Host,
    definition: Definition,
    wanted: Wanted,
    history: Sequence[Release],
    *,
    unchanged: bool,
    stamp: str,
) -> int:
    """Apply the render that is stored in a release record for these inputs, or else a new render; return the deployed
    revision.
    """
    if definition.chart is None:
        raise AssertionError(f"{instance.id}: there is nothing to apply")

    def progress(laggards: Laggards) -> None:
        if laggards:
            reason = applying_reason(laggards, "ApplyingManifests")
            host.emit(instance, Progressed(Stage.APPLIED, reason, instance.masked(waiting_for(laggards))))

    host.emit(instance, Progressed(Stage.APPLIED, "ApplyingManifests", "rendering the chart"))
    found = await recorded(wanted, instance, tools, history, unchanged=unchanged)
    if found is None:
        with waiting(tools):
            if await apply_subchart_crds(instance, tools, wanted, progress):
                # The render may depend on the kinds that the API server serves now.
                wanted = await wanted_render(instance, tools, host, history)
            # A render writes nothing, so a stop may interrupt it.
            found = new_recorded(wanted, await render(wanted.request, instance, tools))
    over = await overlaid(found.rendered, wanted.directives, instance.id.name, tools)
    host.emit(instance, OverridesMatched(over.unmatched))
    unmatched = tuple(f"spec.resourceRequests: {name} is not in the chart" for name in over.unmatched)
    host.emit(instance, WarnedOf("resourceRequests", unmatched))
    objects = over.rendered.objects
    host.emit(instance, Progressed(Stage.APPLIED, "ApplyingManifests", f"applying {counted(len(objects), 'object')}"))
    host.emit(instance, Tracked((), tuple([f"{kind_of(obj)[1]} {name_of(obj)}" for obj in objects])))
    asked = partial(release_request, wanted, found, over.rendered, definition, instance, stamp)
    desired = await trio.to_thread.run_sync(asked)
    try:
        result = await tools.releases.upgrade(desired, progress=progress, told=_way_back(instance, host))
    except WaitInterruptedError as error:
        raise TaskFailed(str(error)) from error
    host.emit(instance, WarnedOf("release", ()))
    known = Brought(wanted.brought_by, desired.fingerprint)
    again = found.rendered.looked or not known.inputs
    host.emit(instance, ChartApplied(result.objects, known.inputs, None if again else known))
    host.emit(instance, _reachable(instance, desired.objects))
    host.emit(instance, Tracked(tuple([str(key) for key in result.objects]), ()))
    host.emit(instance, Released(result.revision))
    return result.revision


async def _confirmed(
    instance: Instance, tools: Tools, host: Host, definition: Definition, wanted: Wanted, history: Sequence[Release]
) -> int | None:
    """Return the revision of a release that an earlier process applied from these inputs, if all of its objects are still as
    they were applied; None if that is not certain.
    """
    request = await recorded_request(wanted, definition, instance, history)
    result = await tools.releases.confirm(request) if request is not None else None
    if request is None or result is None:
        return None
    owner = request.owner
    host.emit(instance, OverridesMatched(()))
    for subject in ("resourceRequests", "release"):
        host.emit(instance, WarnedOf(subject, ()))
    known = None if has_looked(history[-1]) else Brought(wanted.brought_by, request.fingerprint)
    host.emit(instance, ChartApplied(result.objects, wanted.brought_by, known))
    host.emit(instance, _reachable(instance, tools.releases.wanted(owner, ENDPOINT_KINDS)))
    host.emit(instance, Tracked(tuple([str(key) for key in result.objects]), ()))
    host.emit(instance, Released(result.revision))
    return result.revision


def _reachable(instance: Instance, objects: Sequence[JsonObject]) -> Reachable:
    found = endpoint_urls(objects)
    return Reachable(tuple([(instance.masked(each.url), instance.masked(each.description)) for each in found]))


def _warn_of_unread(instance: Instance, host: Host, wanted: Wanted) -> None:
    """Report a warning about settings that no template reads, if the package is a plain chart."""
    found = unread_settings(wanted.use, instance.desired.settings.settings) if wanted.layout is Layout.CHART else ()
    host.emit(instance, WarnedOf(UNREAD, tuple([f"spec.settings.{each.path}: {each.message}" for each in found])))


def _way_back(instance: Instance, host: Host) -> Callable[[tuple[str, ...]], None] | None:
    """Return a function that reports a warning about irreversible changes. Return None if a failed upgrade would not be rolled
    back: the option is off, a rollback is already in force, or there is no revision to return to.
    """
    ready = instance.record.state.ready if instance.record is not None else None
    directives = instance.desired.directives
    if not directives.upgrade.rollback or directives.rolled_back is not None or ready is None:
        return None

    def told(changes: tuple[str, ...]) -> None:
        shown = instance.masked(listed(changes, SHOWN_CHANGES, "; "))
        text = (
            f"{ROLLBACK}: once this upgrade is applied, the package cannot return to revision {ready.revision}: {shown}"
        )
        host.emit(instance, WarnedOf(ROLLBACK, (text,) if changes else ()))

    return told


async def restore(instance: Instance, tools: Tools) -> ObjectsKnown:
    """Watch the objects that an earlier process applied, without applying them again; return these objects. Raises
    ClusterError.
    """
    name, namespace, release_policy = (
        instance.id.release,
        instance.id.namespace,
        instance.desired.directives.release_policy,
    )
    found = await tools.releases.restore(
        name, namespace, drift=drift_of(instance.desired.directives), health=release_policy.health
    )
    objects = await tools.releases.objects(name, namespace) if found is None else found
    return ObjectsKnown(objects)
