"""The rules for deleting and keeping objects, for upgrades, uninstalls and pruning. No other module makes these decisions.

An object that leaves its release is deleted, with three exceptions: the object now belongs to another release, or to no
release; it has the annotation ``helm.sh/resource-policy: keep``, in the chart or in the cluster; or objects of its kind hold
data that cannot be recreated, and their deletion was not requested explicitly. Every object is deleted by its UID, so a new
object with the same name is not affected.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.api.http_errors import NotServedError
from wharfinger.cluster.api.retrying import with_retries
from wharfinger.cluster.fields.owners import own_entry
from wharfinger.cluster.objects.accounts import Acting, always
from wharfinger.cluster.objects.desired import DesiredObject, Identity, identity_of
from wharfinger.cluster.objects.lookup import CONCURRENCY, look_up
from wharfinger.cluster.objects.ownership import PROTECTED, RELEASE_LABEL, Owner, is_kept, owner_of
from wharfinger.cluster.tables.snapshot import Snapshot
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of


def why_kept(key: ObjectKey, wanted: JsonObject, live: JsonObject, owner: Owner, *, delete_protected: bool) -> str:
    """Return why an object that left its release is kept; "" if it is deleted. ``wanted`` is the object as it was applied."""
    found = owner_of(live)
    if found != owner:
        return f"belongs to {found}" if found.name else "does not belong to a release any more"
    if is_kept(wanted) or is_kept(live):
        return "helm.sh/resource-policy: keep"
    if key.resource.group_kind in PROTECTED and not delete_protected:
        return f"{key.resource.kind} objects are only deleted on request"
    return ""


@dataclass(frozen=True, slots=True)
class RemovalDecision:
    """The decision about objects that leave a release.

    ``to_delete`` has the objects to delete, each with its UID. ``kept`` has the objects to keep, each with the reason.
    ``absent`` has objects that do not exist now; until their rows are removed, an apply under way may create them. An object in
    none of the three still belongs to the release: another row has the same object in another API group. ``delete_protected``
    is true if objects of protected kinds may be deleted.
    """

    to_delete: dict[Identity, str] = field(default_factory=dict)
    kept: dict[ObjectKey, str] = field(default_factory=dict)
    absent: set[Identity] = field(default_factory=set)
    delete_protected: bool = False


async def judge_leaving(
    client: ClusterClient,
    rows: Iterable[DesiredObject],
    *,
    staying: frozenset[str] = frozenset(),
    delete_protected: bool = False,
) -> RemovalDecision:
    """Read the object of each row, and decide whether it is deleted or kept.

    ``staying``: UIDs of objects that remain in the release, because another row has the same object in another API group.
    """
    decision = RemovalDecision(delete_protected=delete_protected)

    async def judge(row: DesiredObject) -> None:
        live = await look_up(client, row.key)
        if live is None:
            decision.absent.add(row.identity)
            return
        if (uid := find_str(live, "metadata", "uid")) in staying:
            return
        if why := why_kept(row.key, row.object(), live, row.owner, delete_protected=delete_protected):
            decision.kept[row.key] = why
        else:
            decision.to_delete[row.identity] = uid

    await each(rows, judge, limit=CONCURRENCY)
    return decision


class Deletion(Enum):
    """The result of deleting one object that is identified by its UID."""

    GONE = "deleted, and gone"
    ENDING = "deleted, but kept for now by finalizers or a grace period"
    NOTHING = "does not exist any more, or another object has its name"


async def delete_exactly(client: ClusterClient, key: ObjectKey, uid: str) -> Deletion:
    """Delete the object only if it has this UID. Raises ClusterError."""
    try:
        return Deletion.GONE if await client.delete(key, uid=uid) else Deletion.ENDING
    except NotFoundError:
        return Deletion.NOTHING
    except ConflictError:
        live = await look_up(client, key)
        if live is not None and find_str(live, "metadata", "uid") == uid:
            raise  # a conflict about something else
        return Deletion.NOTHING


async def disown(client: ClusterClient, key: ObjectKey, owner: Owner) -> None:
    """Remove our label from an object that is kept, so that our watches no longer report it; do nothing if it is gone."""
    with suppress(NotFoundError):
        live = await look_up(client, key)
        if live is not None and owner_of(live) == owner and find_str(live, "metadata", "labels", RELEASE_LABEL):
            nothing: JsonObject = {"metadata": {"labels": {RELEASE_LABEL: None}}}
            await with_retries(partial(client.merge_patch, key, nothing), also=(ConflictError,))


def is_ours(obj: JsonObject, owner: Owner, manager: str) -> bool:
    """Return whether an object has the label and the annotations of a release, was applied by us, and is not being deleted.

    The label and the annotations alone prove nothing: some tools copy whole objects, and controllers copy the metadata of parent
    objects. A copy was not applied under ``manager``.
    """
    return (
        owner_of(obj) == owner
        and find_str(obj, "metadata", "labels", RELEASE_LABEL) == owner.name
        and own_entry(obj, manager) is not None
        and not find_str(obj, "metadata", "deletionTimestamp")
    )


@dataclass(frozen=True, slots=True)
class PruneReport:
    """The report of a prune, by release: the deleted objects (``gone``), and objects that could not be deleted, with the error.

    ``cut_off``: the prune ended before it had read all kinds, so objects that earlier prunes could not delete may be missing in
    ``failed``, although they still exist.
    """

    gone: dict[Owner, list[ObjectKey]] = field(default_factory=dict)
    failed: dict[Owner, dict[Identity, tuple[ObjectKey, ClusterError]]] = field(default_factory=dict)
    cut_off: bool = False


def ignore_report(_report: PruneReport) -> None:
    """Ignore the report of a prune."""


class Pruner:
    """A pruner of objects that we applied under ``manager``, with our label and without a row.

    ``whole`` returns whether every wanted object of a release has a row; if not, no object of the release is deleted.
    ``told`` is called with the report of each prune, including one that fails. ``client`` lists objects. ``acting`` returns the
    client that deletes for a release; without it, ``client`` deletes, too.
    """

    def __init__(
        self,
        client: ClusterClient,
        whole: Callable[[Owner], bool],
        manager: str,
        told: Callable[[PruneReport], None] = ignore_report,
        acting: Acting | None = None,
    ) -> None:
        self._client = client
        self._acting = acting or always(client)
        self._told = told
        self._whole = whole
        self._manager = manager

    async def prune(self, snapshot: Snapshot[Identity, DesiredObject]) -> tuple[ObjectKey, ...]:
        """Delete the applied objects that have no row any more, and return their keys. Each kind that has rows is listed once;
        a kind that is not served has no objects.

        If requests fail, the remaining work is done first, so that no kind and no object blocks another one; then the first
        ClusterError is raised.
        """
        kinds: dict[ResourceType, None] = {entry.row.key.resource: None for entry in snapshot.entries()}
        report, errors = PruneReport(), list[ClusterError]()
        cut_off = True
        try:
            for resource in kinds:
                await self._prune_kind(resource, snapshot, report, errors)
            cut_off = False
        finally:  # report deletions also if the prune was cut off by its time limit
            self._told(replace(report, cut_off=cut_off))
        if errors:
            raise errors[0]
        return tuple(key for keys in report.gone.values() for key in keys)

    async def _prune_kind(
        self,
        resource: ResourceType,
        snapshot: Snapshot[Identity, DesiredObject],
        report: PruneReport,
        errors: list[ClusterError],
    ) -> None:
        try:
            listed = await self._client.list(resource, label_selector=RELEASE_LABEL)
        except NotServedError:
            return
        except ClusterError as error:
            errors.append(error)
            return
        for obj in listed.items:
            key, owner = ObjectKey(resource, namespace_of(obj), name_of(obj)), owner_of(obj)
            try:
                if not self._is_left(key, obj, snapshot):
                    continue
                uid = find_str(obj, "metadata", "uid")
                if await delete_exactly(self._acting(owner), key, uid) is not Deletion.NOTHING:
                    report.gone.setdefault(owner, []).append(key)
            except ClusterError as error:
                errors.append(error)
                report.failed.setdefault(owner, {})[identity_of(key)] = (key, error)

    def _is_left(self, key: ObjectKey, obj: JsonObject, snapshot: Snapshot[Identity, DesiredObject]) -> bool:
        owner = owner_of(obj)
        return (
            identity_of(key) not in snapshot
            and self._whole(owner)
            and is_ours(obj, owner, self._manager)
            and not why_kept(key, obj, obj, owner, delete_protected=False)
        )
