"""Bring a release into the cluster, keep it as it should be, take it away: Helm's semantics over server-side apply.

An upgrade is: everything that can be known is checked before anything is written (the namespace is there, nobody else is at
work, every existing object is this release's) → pending record → CRDs, until they are established → hooks → objects in
Helm's order → what left the manifest is deleted → hooks → deployed record. A failure, or being cancelled, marks the new
record failed and leaves the last deployed one as it was.

Fields are owned: applying never takes a field from another manager unless ``force`` says so; the conflict that the server
reports names the other one. The same manifest, values and chart make no new revision; the objects are applied all the same,
which changes nothing where nothing changed and repairs what did.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

import trio

from wharfinger.cluster.apply import Applier
from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.errors import ClusterError, NotFoundError, UnknownKindError
from wharfinger.cluster.install_order import INSTALL_ORDER, rank
from wharfinger.cluster.object_waits import Progress, silent, wait_gone
from wharfinger.cluster.ownership import Owner, flattened
from wharfinger.cluster.release import Release, ReleaseError, ReleaseStatus, check_name, new_release
from wharfinger.cluster.release_hooks import Hook, HookEvent, HookRunner, hook_entry, hooks_of, parse_hooks
from wharfinger.cluster.release_store import HISTORY, ReleaseBusyError, ReleaseStore, Stored
from wharfinger.cluster.resource import ObjectKey, kind_of
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, as_object, find_str
from wharfinger.formats.yaml_reader import YamlLimits, read_yaml_all

SETTLE_S: Final = 10.0
"""How long marking a record failed may take when everything else has already failed."""
ABANDONED_AFTER: Final = timedelta(minutes=10)
"""After so long a pending record of somebody else is taken for what a killed process left."""
THREAD_BYTES: Final = 100_000
"""A manifest over this is parsed in a thread."""
_MANIFEST_LIMITS: Final = YamlLimits(max_bytes=64 * 1024 * 1024, max_characters=256 * 1024 * 1024)


class NamespaceMissingError(ReleaseError):
    """The namespace of a release is not there; it may be made any time."""

    transient = True


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """What is to be in the cluster.

    ``chart`` is the metadata of Chart.yaml, ``values`` what the user gave, ``manifest`` the text that Helm would store for
    ``objects`` (which are what is applied); ``crds`` come from the chart's ``crds/``; ``hooks`` are its ``helm.sh/hook``
    objects; ``labels`` go on the record.
    """

    name: str
    namespace: str
    chart: JsonObject
    values: JsonObject
    manifest: str
    crds: tuple[JsonObject, ...] = ()
    objects: tuple[JsonObject, ...] = ()
    hooks: tuple[JsonObject, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


class Outcome(Enum):
    """What an upgrade did."""

    INSTALLED = "installed"
    UPGRADED = "upgraded"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """``objects`` are all that belong to the release now; ``kept`` left the manifest but stay, each with the reason."""

    outcome: Outcome
    revision: int
    objects: tuple[ObjectKey, ...]
    pruned: tuple[ObjectKey, ...] = ()
    kept: Mapping[ObjectKey, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UninstallResult:
    """``found`` is False where there was no record; ``kept`` are objects that stay, each with the reason."""

    found: bool
    deleted: tuple[ObjectKey, ...] = ()
    kept: Mapping[ObjectKey, str] = field(default_factory=dict)


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class ReleaseEngine:
    """Releases of one cluster. ``holder`` names this daemon in the records it writes."""

    def __init__(
        self,
        client: ClusterClient,
        field_manager: str = "wharfinger",
        now: Callable[[], datetime] = utc_now,
        *,
        holder: str = "wharfinger",
        force: bool = False,
        history: int = HISTORY,
    ) -> None:
        self._client = client
        self._field_manager = field_manager
        self._now = now
        self._holder = holder
        self._force = force
        self._history = history
        self._store = ReleaseStore(client, now)

    async def upgrade(self, request: ReleaseRequest, *, progress: Progress = silent) -> ReleaseResult:
        """Install or upgrade. Raises ReleaseError and its kinds, ConflictError, and whatever the client raises."""
        check_name(request.name)
        hooks = parse_hooks(request.hooks)
        await self._check_namespace(request)
        owner = Owner(request.name, request.namespace)
        applier = self._applier(owner, progress)
        objects = flattened(request.objects)
        await applier.check(objects, request.crds)
        history = await self._settled_history(owner)
        last = history[-1].release if history else None
        entries = [hook_entry(hook) for hook in hooks]
        if last is not None and _unchanged(last, request, entries):
            await applier.apply_crds(request.crds)
            await self._store.tidy(history, self._history)
            return ReleaseResult(Outcome.UNCHANGED, last.revision, tuple(await applier.apply(objects)))
        stored = await self._store.create(self._pending(request, last, entries))
        verb = "Install" if last is None else "Upgrade"
        before, after = _EVENTS[last is not None]
        runner = HookRunner(self._client, request.namespace, progress)
        try:
            await applier.apply_crds(request.crds)
            await runner.run(hooks, before)
            keys = await applier.apply(objects)
            gone = await applier.delete(await self._previous_objects(history), keep=keys)
            await runner.run(hooks, after)
            done = await self._store.update(
                stored, stored.release.with_status(ReleaseStatus.DEPLOYED, f"{verb} complete")
            )
        except BaseException as error:
            await self._fail(stored, history, f"{verb} failed: {_why(error)}")
            raise
        await self._store.tidy([*history, done], self._history)
        outcome = Outcome.INSTALLED if last is None else Outcome.UPGRADED
        return ReleaseResult(outcome, stored.release.revision, tuple(keys), tuple(gone.deleted), gone.kept)

    async def uninstall(
        self, name: str, namespace: str, *, delete_protected: bool = False, progress: Progress = silent
    ) -> UninstallResult:
        """Delete what the release brought, wait until it is gone, then its records. Done twice, the second does nothing."""
        owner = Owner(name, namespace)
        history = await self._settled_history(owner)
        if not history:
            return UninstallResult(found=False)
        last = history[-1]
        await self._store.update(last, last.release.with_status(ReleaseStatus.UNINSTALLING, "Deletion in progress"))
        applier = self._applier(owner, progress)
        runner = HookRunner(self._client, namespace, progress)
        hooks = _hooks_of(last.release)
        await runner.run(hooks, HookEvent.PRE_DELETE)
        objects = await self._previous_objects(history)
        custom = [obj for obj in objects if rank(kind_of(obj)[1]) >= len(INSTALL_ORDER)]
        deleted: dict[ObjectKey, str] = {}
        kept: dict[ObjectKey, str] = {}
        # Custom resources go first, while what clears their finalizers is still running.
        for part in (custom, objects):
            gone = await applier.delete(part, delete_protected=delete_protected, keep=deleted)
            await wait_gone(self._client, gone.deleted, progress=progress)
            deleted |= gone.deleted
            kept |= gone.kept
        await runner.run(hooks, HookEvent.POST_DELETE)
        for stored in await self._store.history(name, namespace):
            await self._store.remove(stored)
        return UninstallResult(found=True, deleted=tuple(deleted), kept=kept)

    async def history(self, name: str, namespace: str) -> list[Release]:
        """All revisions of a release, oldest first."""
        return [stored.release for stored in await self._store.history(name, namespace)]

    async def objects(self, name: str, namespace: str) -> tuple[ObjectKey, ...]:
        """What the last revision of a release has in its manifest, as far as its kinds are served; () where there is none."""
        history = await self._store.history(name, namespace)
        if not history:
            return ()
        applier = self._applier(Owner(name, namespace), silent)
        keys: list[ObjectKey] = []
        for obj in await self._manifest_objects(history[-1].release):
            with suppress(UnknownKindError):
                keys.append(await applier.key_of(obj))
        return tuple(keys)

    async def ensure_crds(
        self, name: str, namespace: str, crds: Sequence[JsonObject], *, progress: Progress = silent
    ) -> tuple[ObjectKey, ...]:
        """Apply definitions that a release is going to need, and wait until they are established; they belong to no release."""
        return tuple(await self._applier(Owner(name, namespace), progress).apply_crds(crds))

    async def apply_early(
        self, name: str, namespace: str, objects: Sequence[JsonObject], *, progress: Progress = silent
    ) -> tuple[ObjectKey, ...]:
        """Apply objects of a release before the release itself, which is going to have them in its manifest.

        Raises ForeignObjectError and UnknownKindError before the first write, and whatever the client raises.
        """
        applier = self._applier(Owner(name, namespace), progress)
        await applier.check(objects, ())
        return tuple(await applier.apply(objects))

    # -- steps

    def _applier(self, owner: Owner, progress: Progress) -> Applier:
        return Applier(self._client, owner, field_manager=self._field_manager, force=self._force, progress=progress)

    async def _check_namespace(self, request: ReleaseRequest) -> None:
        resource = await self._client.resource_type("v1", "Namespace")
        try:
            namespace = await self._client.get(ObjectKey(resource, "", request.namespace))
        except NotFoundError as error:
            raise NamespaceMissingError(
                f"release {request.namespace}/{request.name}: the namespace {request.namespace} does not exist; create it"
            ) from error
        if find_str(namespace, "metadata", "deletionTimestamp"):
            raise NamespaceMissingError(
                f"release {request.namespace}/{request.name}: the namespace {request.namespace} is being deleted"
            )

    async def _settled_history(self, owner: Owner) -> list[Stored]:
        """All records. A pending one of ours, or an old one, is what a killed process left: it is marked failed."""
        history = await self._store.history(owner.name, owner.namespace)
        if not history or not history[-1].release.status.pending:
            return history
        last = history[-1]
        since = last.release.last_deployed
        age = self._now() - since if since is not None else ABANDONED_AFTER
        if last.release.holder != self._holder and age < ABANDONED_AFTER:
            by = last.release.holder or "a helm command"
            raise ReleaseBusyError(
                f"release {owner}: {by} is at work on revision {last.release.revision} ({last.release.status}); "
                f"it is waited for, and taken for abandoned {ABANDONED_AFTER.seconds // 60} minutes after it began"
            )
        abandoned = last.release.with_status(ReleaseStatus.FAILED, f"interrupted while {last.release.status}")
        return [*history[:-1], await self._store.update(last, abandoned)]

    def _pending(self, request: ReleaseRequest, last: Release | None, hooks: list[JsonObject]) -> Release:
        return new_release(
            name=request.name,
            namespace=request.namespace,
            revision=1 if last is None else last.revision + 1,
            status=ReleaseStatus.PENDING_INSTALL if last is None else ReleaseStatus.PENDING_UPGRADE,
            description="Initial install underway" if last is None else "Preparing upgrade",
            chart=request.chart,
            values=request.values,
            manifest=request.manifest,
            hooks=hooks,
            now=self._now(),
            first_deployed="" if last is None else last.first_deployed,
            labels=request.labels,
            holder=self._holder,
        )

    async def _fail(self, stored: Stored, history: Sequence[Stored], description: str) -> None:
        """Mark a record failed, whatever happens; one that cannot be marked stays pending and is found by the next attempt."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + SETTLE_S), suppress(ClusterError):
            failed = await self._store.update(stored, stored.release.with_status(ReleaseStatus.FAILED, description))
            await self._store.trim([*history, failed], self._history)

    async def _previous_objects(self, history: Sequence[Stored]) -> list[JsonObject]:
        """What may be in the cluster: the objects of the last deployed revision and of every attempt after it."""
        revisions = [stored.release for stored in history]
        deployed = [at for at, one in enumerate(revisions) if one.status is ReleaseStatus.DEPLOYED]
        objects: list[JsonObject] = []
        for release in revisions[deployed[-1] if deployed else 0 :]:
            objects += await self._manifest_objects(release)
        return objects

    async def _manifest_objects(self, release: Release) -> list[JsonObject]:
        what = f"manifest of release {release.namespace}/{release.name} revision {release.revision}"

        def parse() -> list[JsonObject]:
            documents = read_yaml_all(release.manifest, what=what, limits=_MANIFEST_LIMITS)
            return flattened([as_object(document, what) for document in documents])

        try:
            if len(release.manifest) > THREAD_BYTES:
                return await trio.to_thread.run_sync(parse, abandon_on_cancel=True)
            return parse()
        except FormatError as error:
            raise ReleaseError(f"{error}; what it installed cannot be told, look at `helm get manifest`") from error


_EVENTS: Final = {
    False: (HookEvent.PRE_INSTALL, HookEvent.POST_INSTALL),
    True: (HookEvent.PRE_UPGRADE, HookEvent.POST_UPGRADE),
}


def _hooks_of(release: Release) -> list[Hook]:
    try:
        return hooks_of(release)
    except FormatError as error:
        raise ReleaseError(f"{error}; its hooks cannot be told, look at `helm get hooks`") from error


def _unchanged(last: Release, request: ReleaseRequest, hooks: list[JsonObject]) -> bool:
    return (
        last.status is ReleaseStatus.DEPLOYED
        and last.manifest == request.manifest
        and last.values == request.values
        and last.chart == request.chart
        and [find_str(hook, "manifest") for hook in last.hooks] == [find_str(hook, "manifest") for hook in hooks]
        and dict(last.labels) == dict(request.labels)
    )


def _why(error: BaseException) -> str:
    others = error.split(trio.Cancelled)[1] if isinstance(error, BaseExceptionGroup) else error
    return "interrupted" if others is None or isinstance(others, trio.Cancelled) else str(others)[:1000]
