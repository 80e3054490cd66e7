"""One upgrade, or install, of one release, step by step.

Checks (as far as possible) → pending record → definitions → hooks → waves → removal of objects that left the manifest → hooks →
deployed record. No object is changed before the checks are over. At the end, the record says how the upgrade ended. If the
upgrade fails, unfinished rows are forgotten. With unchanged manifest, values and chart, there is no new revision. The objects
are checked nevertheless, and those that differ are repaired.

A *quick change* only changes objects that exist. Each of them is applied with its digest, so a later process sees which of them
were applied; the record is written once, when the change is complete (:mod:`~wharfinger.cluster.releases.revision_record`).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ReleaseError, UnknownKindError
from wharfinger.cluster.api.interruption import Interruption
from wharfinger.cluster.api.retrying import with_retries
from wharfinger.cluster.apply.removal import RemovalDecision, judge_leaving
from wharfinger.cluster.crds.definitions import Definitions
from wharfinger.cluster.objects.accounts import Acting
from wharfinger.cluster.objects.desired import DesiredObject, Identity
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.install_order import Wave
from wharfinger.cluster.objects.lookup import CRD, look_up, rows_of
from wharfinger.cluster.objects.ownership import Owner, flattened
from wharfinger.cluster.objects.scope import Confined, check_scope
from wharfinger.cluster.records.record_cache import Stored
from wharfinger.cluster.records.release import STAMP_LABEL, Release, ReleaseStatus, check_name
from wharfinger.cluster.releases.hooks import RUN_BY_DAEMON, Hook, HookEvent, HookRunner, hook_entry, parse_hooks
from wharfinger.cluster.releases.late_tidying import LateTidying
from wharfinger.cluster.releases.preflight import NAMED, Survey, Surveyor
from wharfinger.cluster.releases.record_keeper import RecordKeeper, rollback_text
from wharfinger.cluster.releases.request import Outcome, ReleaseRequest, ReleaseResult
from wharfinger.cluster.releases.revision_record import RevisionRecord
from wharfinger.cluster.releases.rows import ReleaseRows
from wharfinger.cluster.releases.way_back import one_way, refusals
from wharfinger.cluster.watch.object_waits import Progress, silent, wait_gone
from wharfinger.cluster.watch.readiness import Current, readiness
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, as_object, find_str
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import ObjectKey, name_of

# The key is True if a revision is deployed. After a failed install no revision is deployed, so the next attempt runs the install
# hooks again. `.Release.IsInstall` in the templates follows the same rule.
_EVENTS: Final = {
    False: (HookEvent.PRE_INSTALL, HookEvent.POST_INSTALL),
    True: (HookEvent.PRE_UPGRADE, HookEvent.POST_UPGRADE),
}


OneWay: TypeAlias = Callable[[tuple[str, ...]], None]
"""A function that receives the irreversible changes of an upgrade, before its first write."""


class NamespaceMissingError(ReleaseError):
    """The namespace of a release does not exist. Transient: it may be created at any time."""

    transient = True


class NoWayBackError(ReleaseError):
    """A rollback would change live objects in a way that the API server refuses. Nothing was written."""


class EmptyReleaseError(ReleaseError):
    """An upgrade would delete all objects of a release."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of operations on releases; ``manager`` is the name under which objects are applied.

    ``client`` is the daemon's own, for discovery and namespaces. ``acting`` returns the client for the objects of a release.
    """

    client: ClusterClient
    keeper: RecordKeeper
    rows: ReleaseRows
    surveyor: Surveyor
    definitions: Definitions
    confined: Confined
    """A function that returns True for a release that may contain only objects in its own namespace."""
    manager: str
    acting: Acting
    tidying: LateTidying
    interruption: Interruption = field(default_factory=Interruption)


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an upgrade, and the rows of the release."""

    result: ReleaseResult
    rows: tuple[DesiredObject, ...]


@dataclass(slots=True)
class _View:
    """The result of the checks before an upgrade. ``leaving`` are the rows of objects that may exist and are not in the new
    manifest.

    ``unsure`` are the objects that an interrupted attempt may have changed, so that it is not known what was applied last.
    """

    survey: Survey = field(default_factory=Survey)
    history: list[Stored] = field(default_factory=list)
    before: dict[Identity, PackedJson] = field(default_factory=dict)
    unsure: set[Identity] = field(default_factory=set)
    leaving: tuple[DesiredObject, ...] = ()

    def read_again(self) -> "_View":
        """Return the view without the live objects, so that they are read again: hooks may have changed them."""
        return replace(self, survey=replace(self.survey, lives={}, unread=frozenset(), known=frozenset()))

    def marked(self) -> "_View":
        """Return the view with every row marked, so that its object is applied together with the row's digest."""
        return replace(
            self, survey=replace(self.survey, rows=tuple(replace(row, marked=True) for row in self.survey.rows))
        )


class Upgrade:
    """One upgrade, for one request. ``whole`` is True if each object that the release may have in the cluster has a row.

    ``anew`` is True if every object has to be applied, even one that is as wanted, because the release now acts as another
    account.
    """

    def __init__(
        self,
        tools: Tools,
        request: ReleaseRequest,
        progress: Progress,
        *,
        whole: bool,
        anew: bool = False,
        told: OneWay | None = None,
    ) -> None:
        self._tools = tools
        self._request = request
        self._owner = request.owner
        self._progress = progress
        self._whole = whole
        self._told = told
        self._anew = anew

    async def run(self) -> Done:
        """Upgrade the release. Raises ReleaseError and its subclasses, FieldConflictError, UnknownKindError, and the errors
        of the client.

        The check that raises OutsideNamespaceError comes before all other checks that read the cluster.
        """
        request, keeper = self._request, self._tools.keeper
        check_name(request.name)
        hooks = parse_hooks(request.hooks)
        entries = [hook_entry(hook) for hook in hooks]
        objects = flattened(request.objects)
        if self._tools.confined(self._owner):
            daemons = (hook.obj for hook in hooks if hook.events & RUN_BY_DAEMON)
            await check_scope(self._tools.client, self._owner, [*objects, *daemons], request.crds)
        view = await self._look(objects)
        last = view.history[-1].release if view.history else None
        if last is not None and same_release(last, request, entries):
            return await self._repair(view, last)
        back = request.rollback_to > 0 and not _is_back(view.history, request.rollback_to)
        if back:
            self._check_way_back(view)
        elif self._told is not None:
            self._told(self._one_way_changes(view))
        record = RevisionRecord(keeper, request, last, entries, back)
        is_quick = not back and self._is_quick(view, hooks)
        if not is_quick:
            await record.announce()
        verb = "Install" if last is None else "Rollback" if back else "Upgrade"
        before, after = _EVENTS[any(one.release.status is ReleaseStatus.DEPLOYED for one in view.history)]
        if back:
            before, after = HookEvent.PRE_ROLLBACK, HookEvent.POST_ROLLBACK
        confined_to = self._owner if self._tools.confined(self._owner) else None
        interruption = self._tools.interruption
        runner = HookRunner(
            self._tools.acting(self._owner), request.namespace, self._progress, interruption, confined_to=confined_to
        )
        try:
            await self._tools.definitions.apply(self._owner, request.crds, view.survey.definitions, self._progress)
            await runner.run(hooks, before)
            hooked = any(before in hook.events for hook in hooks)
            if is_quick:
                rows = await record.announce_late(partial(self._apply_waves, view.marked()))
            else:
                rows = await self._apply_waves(view.read_again() if hooked else view)
            decision, gone = await self._remove_leaving(view, rows)
            await runner.run(hooks, after)
            text = rollback_text(request.rollback_to) if back else f"{verb} complete"
            done = await record.complete(text)
        except BaseException as error:
            self._tools.rows.forget_unfinished(self._owner, view.leaving)
            await record.fail(view.history, error, verb)
            raise
        if is_quick and not keeper.is_long(view.history):
            self._tools.tidying.add(self._owner)
        else:
            await keeper.tidy([*view.history, done])
        outcome = Outcome.INSTALLED if last is None else Outcome.UPGRADED
        left = self._tools.rows.left(rows)
        result = ReleaseResult(outcome, done.release.revision, _keys(rows), tuple(gone), decision.kept, left)
        return Done(result, rows)

    def _is_quick(self, view: _View, hooks: Sequence[Hook]) -> bool:
        """Return whether the upgrade is a quick change: it changes only existing objects (see the docstring of this module)."""
        survey, last = view.survey, view.history[-1].release if view.history else None
        if last is None or not last.holder or last.status is not ReleaseStatus.DEPLOYED or self._anew:
            return False
        if self._request.crds or survey.coming or view.leaving or view.unsure:
            return False
        if any(hook.events & RUN_BY_DAEMON for hook in hooks) or any(map(_is_definition, survey.rows)):
            return False
        exist = all(live is not None and not is_being_deleted(live) for live in survey.lives.values())
        return exist and all(row.identity in view.before for row in survey.rows)

    async def _repair(self, view: _View, last: Release) -> Done:
        """Restore the missing objects of a release. Its last revision has the wanted content already, so no new revision is
        made.
        """
        try:
            await self._tools.definitions.apply(
                self._owner, self._request.crds, view.survey.definitions, self._progress
            )
            rows = await self._apply_waves(view)
        except BaseException:
            self._tools.rows.forget_unfinished(self._owner)
            raise
        self._tools.tidying.add_if_needed(self._owner, await self._marked(view.history))
        left = self._tools.rows.left(rows)
        return Done(ReleaseResult(Outcome.UNCHANGED, last.revision, _keys(rows), left=left), rows)

    async def _marked(self, history: list[Stored]) -> list[Stored]:
        """Put the request's marks and inputs on the last revision, and return the history with them."""
        last, marks, inputs = history[-1], self._request.marks, self._request.inputs
        if not marks.items() <= last.release.labels.items():
            last = await self._tools.keeper.label(last, marks)
        if inputs and inputs != last.release.inputs and last.release.holder:
            last = await self._tools.keeper.note_inputs(last, inputs)
        return [*history[:-1], last]

    # -- the way back

    def _one_way_changes(self, view: _View) -> tuple[str, ...]:
        """Return a line for each irreversible change of this upgrade."""
        manager, found = self._tools.manager, list[str]()
        for row in view.survey.rows:
            before = view.before.get(row.identity)
            if before is not None and before != row.body:
                found += [f"{row.key}: {why}" for why in one_way(_object(before), row.object(), manager=manager)]
        for crd in self._request.crds:
            live = view.survey.definitions.get(name_of(crd))
            if live is not None:
                what = f"CustomResourceDefinition {name_of(crd)}"
                found += [f"{what}: {why}" for why in one_way(live, crd, manager=manager)]
        return tuple(found)

    def _check_way_back(self, view: _View) -> None:
        """Check that no live object prevents a rollback. Raises NoWayBackError, which names the objects."""
        found: list[str] = []
        for row in view.survey.rows:
            live = view.survey.lives.get(row.identity)
            before = view.before.get(row.identity)
            present = live if live is not None else _object(before) if before is not None else None
            if present is not None and row.identity not in view.survey.unread and not is_being_deleted(present):
                found += [f"{row.key}: {why}" for why in refusals(present, row.object(), manager=self._tools.manager)]
        if found:
            raise NoWayBackError(
                f"release {self._owner}: there is no way back to revision {self._request.rollback_to}: "
                f"{listed(found, NAMED, '; ')}; nothing was changed"
            )

    # -- before the first write

    async def _look(self, objects: Sequence[JsonObject]) -> _View:
        request, view = self._request, _View()

        async def survey() -> None:
            view.survey = await self._tools.surveyor.survey(self._owner, objects, request.crds, request.drift)

        async def read() -> None:
            view.history = await self._tools.keeper.settled(self._owner)

        async def check() -> None:
            await check_namespace(self._tools, self._owner)

        await each([check, survey, read], lambda look: look(), limit=3)
        there, view.unsure = await possible_rows(
            self._tools, self._owner, view.history, request.drift, whole=self._whole
        )
        wanted = {row.identity for row in view.survey.rows}
        view.unsure |= wanted if self._anew else set()
        view.before = {identity: row.body for identity, row in there.items()}
        view.leaving = tuple(row for identity, row in there.items() if identity not in wanted)
        if not objects and not request.prune_to_empty:
            check_not_emptied(self._owner, view.leaving)
        return view

    # -- objects

    async def _apply_waves(self, view: _View) -> tuple[DesiredObject, ...]:
        """Apply wave after wave; return the rows of all objects, in install order."""
        rows, survey = list(view.survey.rows), view.survey
        for wave in Wave:
            if wave is Wave.CUSTOM and survey.coming:
                arrived = await with_retries(self._arrived(survey.coming), also=(UnknownKindError,))
                rows += arrived.rows
                await self._put(arrived.rows, replace(view, survey=arrived))
            part = [row for row in survey.rows if row.wave == wave]
            await self._put(part, view)
            await self._await_definitions(part, survey.lives)
        return tuple(rows)

    def _arrived(self, coming: Sequence[JsonObject]) -> Callable[[], Awaitable[Survey]]:
        return partial(self._tools.surveyor.survey, self._owner, coming, (), self._request.drift)

    async def _put(
        self,
        rows: Sequence[DesiredObject],
        view: _View,
    ) -> None:
        if not rows:
            return
        survey, lives = view.survey, view.survey.lives
        going = {row: live for row in rows if (live := lives.get(row.identity)) is not None and is_being_deleted(live)}
        if going:
            # An apply now would be lost when the object is gone, so wait until it is gone, and create a new one.
            uids = {row.key: find_str(live, "metadata", "uid") for row, live in going.items()}
            with self._tools.interruption.waiting(f"the end of {next(iter(going)).key}"):
                await wait_gone(self._tools.client, uids, progress=self._progress)
            lives = {**lives, **{row.identity: None for row in going}}
        await self._tools.rows.put(
            rows,
            lives,
            view.before,
            self._progress,
            unread=survey.unread,
            known=survey.known,
            unsure=view.unsure,
        )

    async def _await_definitions(
        self, rows: Iterable[DesiredObject], lives: Mapping[Identity, JsonObject | None]
    ) -> None:
        """Wait until the new CRDs among these rows are established, because the last wave contains objects of the kinds that
        they define.
        """
        new = [
            row.key
            for row in rows
            if row.key.resource.group_kind == CRD
            and ((live := lives.get(row.identity)) is None or not isinstance(readiness(live), Current))
        ]
        if new:
            await self._tools.definitions.established(new, self._progress)

    async def _remove_leaving(
        self, view: _View, rows: Sequence[DesiredObject]
    ) -> tuple[RemovalDecision, list[ObjectKey]]:
        here = {row.identity for row in rows}
        leaving = [row for row in view.leaving if row.identity not in here]
        if not leaving:
            return RemovalDecision(), []
        staying = self._tools.rows.uids(rows)
        decision = await judge_leaving(self._tools.acting(self._owner), leaving, staying=staying)
        removed = await self._tools.rows.remove(leaving, decision, self._progress)
        return decision, removed.deleted


async def check_namespace(tools: Tools, owner: Owner) -> None:
    """Check that the namespace of a release exists and is not being deleted.

    Raises NamespaceMissingError, and the errors of the client.
    """
    if any(
        row.key.namespace == owner.namespace and tools.surveyor.is_as_last_applied(row) for row in tools.rows.of(owner)
    ):
        await trio.lowlevel.checkpoint()
        return  # an object of the release exists in the namespace, so the namespace exists
    resource = await with_retries(partial(tools.client.resource_type, "v1", "Namespace"))
    namespace = await look_up(tools.client, ObjectKey(resource, "", owner.namespace))
    if namespace is None:
        raise NamespaceMissingError(f"release {owner}: the namespace {owner.namespace} does not exist; create it")
    if find_str(namespace, "metadata", "deletionTimestamp"):
        raise NamespaceMissingError(f"release {owner}: the namespace {owner.namespace} is being deleted")


async def possible_rows(
    tools: Tools, owner: Owner, history: Sequence[Stored], drift: DriftPolicy, *, whole: bool
) -> tuple[dict[Identity, DesiredObject], set[Identity]]:
    """Return the rows of all objects that the release may have in the cluster. Also return the objects whose last applied
    content is not known, because an interrupted attempt may have changed them.

    If ``whole`` is true, the table has all these rows, so no record has to be read. Raises ReleaseError, and the errors of the
    client.
    """
    there = {row.identity: row for row in tools.rows.of(owner)}
    unsure: set[Identity] = set()
    if not whole and history:
        for objects_of_revision in await tools.keeper.possible_objects(history):
            for row in await rows_of(tools.client, owner, objects_of_revision, drift):
                if there.setdefault(row.identity, row).body != row.body:
                    unsure.add(row.identity)
    return there, unsure


def check_not_emptied(owner: Owner, leaving: Sequence[DesiredObject]) -> None:
    """Raise EmptyReleaseError if there are objects that the empty manifest would delete (``leaving``)."""
    if leaving:
        count = len(leaving)
        lost = "its only object" if count == 1 else f"all of its {count} objects"
        raise EmptyReleaseError(
            f"release {owner}: its manifest is empty, which would delete {lost}; "
            "set spec.allowEmpty: true if this is intended"
        )


async def apply_early(
    tools: Tools, owner: Owner, objects: Sequence[JsonObject], drift: DriftPolicy
) -> tuple[ObjectKey, ...]:
    """Apply objects that the release's manifest will contain. Nothing is written before all objects were checked."""
    flat = flattened(objects)
    if tools.confined(owner):
        await check_scope(tools.client, owner, flat)
    survey = await tools.surveyor.survey(owner, flat, (), drift)
    before = {row.identity: row.body for row in tools.rows.of(owner)}
    try:
        for wave in Wave:
            part = [row for row in survey.rows if row.wave == wave]
            await tools.rows.put(part, survey.lives, before, silent, known=survey.known)
    except BaseException:
        tools.rows.forget_unfinished(owner)
        raise
    return tuple(row.key for row in survey.rows)


def same_release(last: Release, request: ReleaseRequest, hooks: Sequence[JsonObject]) -> bool:
    """Return whether the last revision is deployed and equal to the request.

    A revision that this project wrote may lack marks of the request, because marks can be added to it later.
    """
    found = {name: value for name, value in last.labels.items() if name != STAMP_LABEL}
    marked = {**found, **request.marks} if last.holder else found
    return (
        last.status is ReleaseStatus.DEPLOYED
        and last.manifest == request.manifest
        and last.values == request.values
        and last.chart == request.chart
        and [find_str(hook, "manifest") for hook in last.hooks] == [find_str(hook, "manifest") for hook in hooks]
        and marked == {**request.labels, **request.marks}
        and last.base == request.base
    )


def _is_definition(row: DesiredObject) -> bool:
    return row.key.resource.group_kind == CRD


def _object(body: PackedJson) -> JsonObject:
    return as_object(body.value(), "applied object")


def _is_back(history: Sequence[Stored], revision: int) -> bool:
    """Return whether a rollback to this revision was completed already. If so, the request is now an ordinary upgrade."""
    done = (ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED)
    text = rollback_text(revision)
    return any(one.release.description == text and one.release.status in done for one in history)


def is_being_deleted(live: JsonObject) -> bool:
    """Return whether an object is being deleted."""
    return bool(find_str(live, "metadata", "deletionTimestamp"))


def _keys(rows: Iterable[DesiredObject]) -> tuple[ObjectKey, ...]:
    return tuple(row.key for row in rows)
