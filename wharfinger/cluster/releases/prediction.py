"""A prediction of an upgrade: the changes that it would make in the cluster, object by object, without a write.

Each object that the upgrade would apply is applied in a dry run, with the same fields, the same manager and the same handling
of conflicts; the API server answers with the object as it would be stored after defaulting and admission. Objects that would
leave the release are judged as the upgrade judges them.

If the same upgrade creates the kind or the namespace of an object, or changes the definition of its kind, a dry run of the
object is not possible, and the chart's object is shown instead. A prediction does not contain these changes:

* the effects of hooks (a note names the hooks that would run);
* changes after the apply, by controllers or autoscalers;
* for an object that a user's helm applied last: the removal of fields that are no longer in the chart (a note mentions it).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.errors import (
    ApiError,
    ClusterError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from wharfinger.cluster.apply.removal import judge_leaving
from wharfinger.cluster.apply.writer import ObjectWriter
from wharfinger.cluster.crds.definitions import is_within
from wharfinger.cluster.fields.adoption import adoption_patch
from wharfinger.cluster.objects.desired import DIGEST_ANNOTATION, DesiredObject, Identity, desired_object
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.lookup import CONCURRENCY, CRD, key_of, look_up
from wharfinger.cluster.objects.ownership import Owner, flattened, placed
from wharfinger.cluster.objects.scope import check_scope
from wharfinger.cluster.records.release import ReleaseStatus, check_name
from wharfinger.cluster.releases.hooks import RUN_BY_DAEMON, Hook, HookEvent, hook_entry, parse_hooks
from wharfinger.cluster.releases.preflight import Survey
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.cluster.releases.upgrade import (
    Tools,
    check_namespace,
    check_not_emptied,
    is_being_deleted,
    possible_rows,
    same_release,
)
from wharfinger.formats.json.value import JsonObject, as_object, find_str
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import kind_of, name_of, namespace_of

SHOWN: Final = 5
"""The largest number of hooks, or of fields, that a note names."""
_NOBODY: Final = Owner("", "")


class Change(StrEnum):
    """The predicted change of one object by an upgrade."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    KEEP = "keep"
    """The object is no longer in the chart, but stays in the cluster."""
    UNCHANGED = "unchanged"
    UNKNOWN = "unknown"


class Source(StrEnum):
    """The source of a prediction."""

    DRY_RUN = "dry run"
    CHART = "chart"
    RULES = "rules"
    """The prediction needs no dry run: it follows from the rules for deletions, or from a comparison with the live object."""


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """The predicted change of one object. ``before`` is the live object, ``after`` the object as it would be."""

    object: str
    change: Change
    by: Source
    before: JsonObject | None = None
    after: JsonObject | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted changes, in the order of the upgrade, including unchanged objects. ``notes`` are about the upgrade as a
    whole.
    """

    changes: tuple[ObjectChange, ...]
    notes: tuple[str, ...] = ()


async def predict(tools: Tools, request: ReleaseRequest, force: bool, *, whole: bool) -> Prediction:  # noqa: FBT001
    """Return the changes that an upgrade of this request would make. Nothing is written.

    Raises the errors that the upgrade would raise before its first write.
    """
    check_name(request.name)
    hooks, objects, owner = parse_hooks(request.hooks), flattened(request.objects), request.owner
    if tools.confined(owner):
        daemons = (hook.obj for hook in hooks if hook.events & RUN_BY_DAEMON)
        await check_scope(tools.client, owner, [*objects, *daemons], request.crds)
    await check_namespace(tools, owner)
    survey = await tools.surveyor.survey(owner, objects, request.crds, request.drift)
    history = await tools.keeper.history(owner)
    there, _ = await possible_rows(tools, owner, history, request.drift, whole=whole)
    wanted = {row.identity for row in survey.rows}
    coming = {(kind_of(obj)[1], namespace_of(obj) or owner.namespace, name_of(obj)) for obj in survey.coming}
    leaving = [row for identity, row in there.items() if identity not in wanted and not _comes(row, coming)]
    if not objects and not request.prune_to_empty:
        check_not_emptied(owner, leaving)
    predictor = _Predictor(tools, ObjectWriter(tools.acting(owner), tools.manager, force, dry_run=True), survey, there)
    changes = [*await predictor.definitions(request.crds), *await predictor.objects()]
    scoped = _scopes([*request.crds, *objects])
    changes += [
        _by_chart(obj, "the same upgrade creates its kind", _place_of(obj, owner, scoped)) for obj in survey.coming
    ]
    changes += await predictor.leaving(leaving)
    last = history[-1].release if history else None
    entries = [hook_entry(hook) for hook in hooks]
    same = last is not None and same_release(last, request, entries)
    is_deployed = any(stored.release.status is ReleaseStatus.DEPLOYED for stored in history)
    notes = () if same else tuple(_hook_notes(hooks, is_upgrade=is_deployed))
    return Prediction(tuple(changes), notes)


class _Predictor:
    """The code that predicts the change of each object of one release."""

    def __init__(
        self,
        tools: Tools,
        writer: ObjectWriter,
        survey: Survey,
        there: dict[Identity, DesiredObject],
    ) -> None:
        self._tools = tools
        self._writer = writer
        self._survey = survey
        self._there = there
        self._changing: set[str] = set()
        """The kinds whose definitions change with the upgrade, as ``Kind.group``."""
        self._namespaces = {row.key.name for row in survey.rows if row.key.resource.group_kind == "Namespace"}

    async def objects(self) -> list[ObjectChange]:
        """Predict the changes of the manifest's objects whose kinds are served: first definitions, then all other objects."""
        rows = self._survey.rows
        first = await each([row for row in rows if _is_definition(row)], self._object, limit=CONCURRENCY)
        self._note_definitions(first)
        rest = await each([row for row in rows if not _is_definition(row)], self._object, limit=CONCURRENCY)
        return [*first, *rest]

    def _note_definitions(self, changes: Iterable[ObjectChange]) -> None:
        self._changing |= _scopes(
            [each.after for each in changes if each.change is Change.CHANGE and each.after]
        ).keys()

    async def definitions(self, crds: Iterable[JsonObject]) -> list[ObjectChange]:
        """Predict the changes of the definitions in ``crds/``, which belong to no release."""

        async def definition(crd: JsonObject) -> ObjectChange:
            key = await key_of(self._tools.client, _NOBODY, crd)
            wanted, live = placed(crd, key), self._survey.definitions.get(key.name)
            row = desired_object(key, _NOBODY, crd, DriftPolicy())
            if live is not None and is_within(wanted, live):
                return ObjectChange(str(row.identity), Change.UNCHANGED, Source.RULES, live, live)
            return await self._dry_run(row, wanted, live, wanted, DriftPolicy())

        found = await each(crds, definition, limit=CONCURRENCY)
        self._note_definitions(found)
        return found

    async def leaving(self, rows: Sequence[DesiredObject]) -> list[ObjectChange]:
        """Predict the changes of the objects that are no longer in the manifest."""
        staying = frozenset(
            find_str(live, "metadata", "uid") for live in self._survey.lives.values() if live is not None
        )
        decision = await judge_leaving(self._writer.client, rows, staying=staying)
        deleted = [
            ObjectChange(str(row.identity), Change.DELETE, Source.RULES)
            for row in rows
            if row.identity in decision.to_delete
        ]
        kept = [
            ObjectChange(str(row.identity), Change.KEEP, Source.RULES, note=decision.kept[row.key])
            for row in rows
            if row.key in decision.kept
        ]
        return [*deleted, *kept]

    async def _object(self, row: DesiredObject) -> ObjectChange:
        # Objects that are known to be as applied are read, too, because somebody may have changed one just now.
        live = self._survey.lives.get(row.identity)
        if live is None and row.identity not in self._survey.lives:
            live = await look_up(self._writer.client, row.key)
        before = self._there.get(row.identity)
        return await self._dry_run(row, row.object(), live, None if before is None else before.object(), row.drift)

    async def _dry_run(
        self,
        row: DesiredObject,
        wanted: JsonObject,
        live: JsonObject | None,
        before: JsonObject | None,
        drift: DriftPolicy,
    ) -> ObjectChange:
        name = str(row.identity)
        if live is not None and is_being_deleted(live):
            note = "the object is being deleted; the upgrade waits until it is gone, and creates a new one"
            return ObjectChange(name, Change.CREATE, Source.CHART, after=wanted, note=note)
        if row.key.resource.group_kind in self._changing:
            return _beside(name, wanted, live, "the same upgrade changes the definition of its kind")
        try:
            written = await self._writer.write(row.key, wanted, live, before=lambda: before, drift=drift)
        except NotFoundError as error:
            if live is None and row.key.namespace in self._namespaces:
                return _by_chart(wanted, "the same upgrade creates its namespace", row.key.namespace)
            return ObjectChange(name, Change.UNKNOWN, Source.DRY_RUN, live, note=f"the apply would fail: {error}")
        except UnreachableError:
            raise
        except (ConflictError, InvalidError, ApiError, ClusterError) as error:
            return ObjectChange(name, Change.UNKNOWN, Source.DRY_RUN, live, note=f"the apply would fail: {error}")
        left = tuple(f"{one.field} stays with {one.manager}" for one in written.left)
        notes = [listed(left, SHOWN, "; ")] if left else []
        if live is not None and adoption_patch(live, self._writer.manager):
            notes.append(
                "helm applied the object last, so the next apply also removes fields that are no longer in the chart; these "
                "changes are not shown here"
            )
        note = "; ".join(notes)
        if live is None:
            return ObjectChange(name, Change.CREATE, Source.DRY_RUN, after=written.live, note=note)
        same = as_stored(live) == as_stored(written.live)
        change = Change.UNCHANGED if same else Change.CHANGE
        return ObjectChange(name, change, Source.DRY_RUN, live, written.live, note)


def as_stored(obj: JsonObject) -> JsonObject:
    """Return the object as users know it: without its status, and without the metadata that the server or the daemon adds."""
    kept: JsonObject = {key: value for key, value in obj.items() if key not in {"metadata", "status"}}
    metadata = as_object(obj.get("metadata") or {}, "metadata")
    shown: JsonObject = {key: value for key, value in metadata.items() if key not in _BOOKKEEPING}
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and DIGEST_ANNOTATION in annotations:
        shown["annotations"] = {key: value for key, value in annotations.items() if key != DIGEST_ANNOTATION}
    return {**kept, "metadata": shown}


_BOOKKEEPING: Final = frozenset(
    {"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"}
)


def _by_chart(obj: JsonObject, note: str, namespace: str) -> ObjectChange:
    group_kind = _group_kind(obj)
    return ObjectChange(
        str(Identity(group_kind, namespace, name_of(obj))), Change.CREATE, Source.CHART, after=obj, note=note
    )


def _beside(name: str, wanted: JsonObject, live: JsonObject | None, note: str) -> ObjectChange:
    """Return the change of an object for which no dry run is possible. The new object is assumed to be the live object,
    overridden by the chart's fields.
    """
    if live is None:
        return ObjectChange(name, Change.CREATE, Source.CHART, after=wanted, note=note)
    change = Change.UNCHANGED if is_within(wanted, live) else Change.CHANGE
    return ObjectChange(name, change, Source.CHART, live, _over(live, wanted), note)


def _over(live: JsonObject, wanted: JsonObject) -> JsonObject:
    merged: JsonObject = dict(live)
    for key, value in wanted.items():
        old = live.get(key)
        merged[key] = _over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _is_definition(row: DesiredObject) -> bool:
    return row.key.resource.group_kind == CRD


def _group_kind(obj: JsonObject) -> str:
    api_version, kind = kind_of(obj)
    group = api_version.rpartition("/")[0]
    return f"{kind}.{group}" if group else kind


def _scopes(objects: Iterable[JsonObject]) -> dict[str, bool]:
    """Return whether each kind that these CRDs define is namespaced, by its name ``Kind.group``."""
    found: dict[str, bool] = {}
    for obj in objects:
        if kind_of(obj)[1] == "CustomResourceDefinition":
            kind, group = find_str(obj, "spec", "names", "kind"), find_str(obj, "spec", "group")
            found[f"{kind}.{group}"] = find_str(obj, "spec", "scope") == "Namespaced"
    return found


def _place_of(obj: JsonObject, owner: Owner, scoped: dict[str, bool]) -> str:
    """Return the namespace of an object of a kind that is not served yet; "" if the kind is cluster-scoped."""
    return (namespace_of(obj) or owner.namespace) if scoped.get(_group_kind(obj), True) else ""


def _comes(row: DesiredObject, coming: set[tuple[str, str, str]]) -> bool:
    """Return whether the object of this row is in ``coming``, the objects whose kinds are not served yet."""
    return (row.key.resource.kind, row.key.namespace, row.key.name) in coming


def _hook_notes(hooks: Sequence[Hook], *, is_upgrade: bool) -> Iterable[str]:
    events = (
        {HookEvent.PRE_UPGRADE, HookEvent.POST_UPGRADE}
        if is_upgrade
        else {HookEvent.PRE_INSTALL, HookEvent.POST_INSTALL}
    )
    running = [hook for hook in hooks if hook.events & events]
    if running:
        yield f"{listed(map(str, running), SHOWN, ', ')}: would run; what hooks change is not predicted"
