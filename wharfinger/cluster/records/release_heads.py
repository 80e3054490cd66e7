"""The revisions of all releases of a cluster, without their content, from one watch of Helm's record Secrets.

Looking up a revision costs no request, and operations of a user's helm are noticed immediately. Only metadata of a record's
Secret is read: revision, status, writer. The watch may lag behind, so each write is checked by the API server: a new revision
is created under its own name, a change replaces only the state that was read, and both are refused if another writer was first.

Our own changes are recognized (:meth:`ReleaseHeads.writing`), whether the watch reports them before or after the answer to the
write. All other changes are foreign. These foreign changes are reported: a new revision, a new status (except *superseded*,
which comes with a new revision), and the deletion of the last remaining record of a release. The author of such a change is
known only as far as the record's Secret shows it: the daemon that wrote the record, or the field manager of the last write.
Only the audit log of the API server names the user.
"""

from collections.abc import AsyncGenerator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from wharfinger.cluster.api.raw_object import RawChange
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.listed_records import ListedRecords
from wharfinger.cluster.records.release import SECRET_TYPE, ReleaseStatus, read_holder
from wharfinger.cluster.watch.object_stream import WatchSubscription
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ResourceType

SECRETS: Final = ResourceType("", "v1", "Secret", "secrets", namespaced=True)
SELECTOR: Final = "owner=helm"
FIELDS: Final = f"type={SECRET_TYPE}"


@dataclass(frozen=True, slots=True)
class ReleaseHead:
    """One revision, from the metadata of its Secret. ``manager``: the field manager of the last write."""

    owner: Owner
    revision: int
    status: ReleaseStatus
    holder: Holder
    secret: str
    uid: str
    version: str
    manager: str = ""

    @property
    def state(self) -> tuple[str, str, str]:
        """Return a value that identifies, within the namespace, the Secret of the revision and its present content."""
        return (self.secret, self.uid, self.version)


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """Another writer wrote, or (``gone``) deleted, a revision. ``by`` names the writer as far as it is known."""

    head: ReleaseHead
    gone: bool = False

    @property
    def owner(self) -> Owner:
        """Return the release that was changed."""
        return self.head.owner

    @property
    def by_helm(self) -> bool:
        """Return whether the change was a user's `helm uninstall`: helm removes the holder's name from the record when it begins
        the uninstall.
        """
        head = self.head
        return self.gone and head.status is ReleaseStatus.UNINSTALLING and not head.holder.identity

    @property
    def by(self) -> str:
        """The writer in words: ``a helm command (field manager helm)``, ``the Wharfinger daemon x``."""
        head = self.head
        if self.by_helm:
            return "a helm uninstall"
        if self.gone and head.status is not ReleaseStatus.UNINSTALLING:
            return "a process that deleted all records of the release"
        if head.holder.identity:
            return str(head.holder)
        return f"{head.holder} (field manager {head.manager})" if head.manager else str(head.holder)

    def __str__(self) -> str:
        """Return the change as one sentence."""
        at = f"release {self.owner}"
        if self.gone:
            return f"{at}: its last record, revision {self.head.revision}, was deleted by {self.by}"
        return f"{at}: revision {self.head.revision} was set to status {self.head.status} by {self.by}"


OnForeign = Callable[[ForeignChange], None]
"""A listener for foreign changes. It is called synchronously, and must not block."""


class ReleaseHeads:
    """The revisions of all releases, made by :func:`open_release_heads`."""

    def __init__(self, ours: Holder) -> None:
        self._ours = ours
        self._listed = ListedRecords()
        self._releases: dict[Owner, dict[str, ReleaseHead]] = {}
        self._owners: dict[tuple[str, str], Owner] = {}
        self._writing: dict[tuple[str, str], list[RawChange]] = {}
        self._listeners: list[OnForeign] = []
        self._subscription: WatchSubscription | None = None

    @property
    def synced(self) -> bool:
        """Return whether the watch has reported all records that existed when it began."""
        return self._subscription is not None and self._subscription.listed

    async def wait_synced(self) -> None:
        """Wait for the first list. Raises the error of that list if it failed."""
        if self._subscription is not None:
            await self._subscription.wait_first_list()

    def listen(self, listener: OnForeign) -> None:
        """Call ``listener`` for each change that another writer makes from now on."""
        self._listeners.append(listener)

    def heads(self, owner: Owner) -> tuple[ReleaseHead, ...]:
        """Return all revisions of a release, oldest first."""
        return tuple(sorted(self._releases.get(owner, {}).values(), key=lambda head: head.revision))

    def newest(self, owner: Owner) -> ReleaseHead | None:
        """Return the last revision; None if the release has no revisions."""
        heads = self.heads(owner)
        return heads[-1] if heads else None

    def state(self, owner: Owner) -> Hashable:
        """Return a value that changes whenever any record of the release changes."""
        return frozenset(head.state for head in self._releases.get(owner, {}).values())

    def take_records(self, owner: Owner) -> tuple[bytes, ...]:
        """Return the Secrets of a release as the first list had them, and discard them; () if not all of them are kept, or if one
        has changed since.
        """
        heads = self._releases.get(owner, {})
        return self._listed.take(owner.namespace, {head.secret: head.version for head in heads.values()})

    # -- our own writes

    @contextmanager
    def writing(self, namespace: str, secret: str) -> Iterator[Callable[[JsonObject | None], None]]:
        """Announce the write of a Secret that the block makes for this daemon. The block passes the resulting Secret to the
        yielded function, or None if the write deletes the Secret.

        If the block ends without calling this function, changes that the watch reported meanwhile are attributed to the holder
        that the Secret names.
        """
        place = (namespace, secret)
        versions: list[str] = []
        deleted: list[bool] = []

        def wrote(written: JsonObject | None) -> None:
            if written is None:
                deleted.append(True)
                self._forget(place)
                return
            versions.append(find_str(written, "metadata", "resourceVersion"))
            head = read_head(msgspec.json.encode({"metadata": written["metadata"]}))
            if head is not None:
                self._keep(place, head)

        held = self._writing[place] = []
        try:
            yield wrote
        finally:
            del self._writing[place]
            for change in held:
                if change.type is WatchType.DELETED and deleted:
                    self._forget(place)
                elif change.object is None or change.object.resource_version not in versions:
                    self._take(place, change)

    # -- the watch

    def changed(self, change: RawChange) -> None:
        """Record one change of a Secret."""
        place = (change.key.namespace, change.key.name)
        if place in self._writing:
            self._writing[place].append(change)
        else:
            self._take(place, change)

    def _take(self, place: tuple[str, str], change: RawChange) -> None:
        if change.type is WatchType.DELETED:
            self._gone(place, change)
            return
        head = read_head(change.object.text) if change.object is not None else None
        if head is None or change.object is None:
            self._listed.refuse(place[0])
            return  # its type is that of a record, but its labels are missing
        before = self._of(place)
        if before is not None and before.uid == head.uid and not _newer(head.version, before.version):
            return
        self._keep(place, head)
        if not self.synced and head.holder.identity:
            self._listed.keep(place, head.version, change.object.text)
        if not self.synced or head.holder.identity == self._ours.identity:
            return
        new = before is None or before.uid != head.uid
        changed = before is not None and before.status is not head.status
        if new or (changed and head.status is not ReleaseStatus.SUPERSEDED):
            self._tell(ForeignChange(head))

    def _gone(self, place: tuple[str, str], change: RawChange) -> None:
        before = self._of(place)
        if before is None or (change.object is not None and change.object.uid != before.uid):
            return
        self._forget(place)
        # Another writer may delete the record before our own uninstall does; this is not reported.
        ours = before.status is ReleaseStatus.UNINSTALLING and before.holder.identity == self._ours.identity
        if self.synced and not ours and before.owner not in self._releases:
            self._tell(ForeignChange(before, gone=True))

    def _of(self, place: tuple[str, str]) -> ReleaseHead | None:
        owner = self._owners.get(place)
        return None if owner is None else self._releases[owner][place[1]]

    def _keep(self, place: tuple[str, str], head: ReleaseHead) -> None:
        if self._owners.get(place, head.owner) != head.owner:
            self._forget(place)
        self._owners[place] = head.owner
        self._releases.setdefault(head.owner, {})[place[1]] = head

    def _forget(self, place: tuple[str, str]) -> None:
        owner = self._owners.pop(place, None)
        if owner is not None:
            del self._releases[owner][place[1]]
            if not self._releases[owner]:
                del self._releases[owner]

    def _tell(self, change: ForeignChange) -> None:
        for listener in self._listeners:
            listener(change)


@asynccontextmanager
async def open_release_heads(watches: SharedWatches, ours: Holder) -> AsyncGenerator[ReleaseHeads, None]:
    """Follow the records of all releases for as long as the block runs. The block does not wait for the first list."""
    heads = ReleaseHeads(ours)
    with watches.subscribe(SECRETS, "", SELECTOR, FIELDS, heads.changed) as subscription:
        heads._subscription = subscription  # noqa: SLF001 - the constructor of the same module
        yield heads


# -- reading


class _Manager(msgspec.Struct):
    manager: str = ""
    time: str = ""


class _Metadata(msgspec.Struct):
    name: str
    namespace: str
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    managers: list[_Manager] = msgspec.field(default_factory=list, name="managedFields")


class _Secret(msgspec.Struct):
    """The fields of a record's Secret that are read; the record itself is skipped."""

    metadata: _Metadata


_SECRET: Final = msgspec.json.Decoder(_Secret)
_MAX_REVISION_DIGITS: Final = 10


def read_head(text: bytes) -> ReleaseHead | None:
    """Read the head of a release record from the JSON of its Secret. Return None if a label that Helm puts on every record is
    missing or invalid.
    """
    try:
        metadata = _SECRET.decode(text).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    labels = metadata.labels
    name, revision, status = labels.get("name", ""), labels.get("version", ""), labels.get("status", "")
    if not name or not revision.isascii() or not revision.isdigit() or len(revision) > _MAX_REVISION_DIGITS:
        return None
    last = max(metadata.managers, key=lambda one: one.time, default=_Manager())
    return ReleaseHead(
        owner=Owner(name, metadata.namespace),
        revision=int(revision),
        status=ReleaseStatus(status) if status in set(ReleaseStatus) else ReleaseStatus.UNKNOWN,
        holder=read_holder({**metadata.annotations}),
        secret=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        manager=last.manager,
    )


def _newer(version: str, than: str) -> bool:
    """Return whether a resourceVersion is later; if versions are not numbers, whether it differs."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than
