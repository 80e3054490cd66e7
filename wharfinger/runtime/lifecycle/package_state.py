"""The recorded state of a package, which outlives the daemon's process: one Secret for each package.

A custom resource has the desired state, and a release record has the applied state. Neither of them can record which one-time
steps are done, which values the hooks have patched, and which digest the installed version has. This Secret records them:

* It is in the package's namespace, and its type is ``wharfinger.dev/package-state``. It is a Secret because the values of hooks
  may contain secrets.
* The Secret is written *before* a step counts as done. So a recorded step is never run again, but a step that is not recorded
  may have run.
* Each write names the resourceVersion that was read (compare-and-set), so two daemons cannot overwrite each other's changes.
* It has the checksums of the last applied inputs, and the revision of the release that was made from them. A later revision may
  have a stamp with newer checksums (:mod:`wharfinger.runtime.lifecycle.applied_stamp`).

The JSON document in the Secret has a version number, its ``schema``:

* Version 1 has no field ``schema``. It does not record what was applied, so it is read as if nothing had been applied.
* Version 2 does not record the objects that hooks were synchronized with.
* Version 3 does not record the kinds of objects that hooks made.
* Version 4 does not record the former revision to which a package can return.
* A version that is newer than SCHEMA is refused, because fields that this program does not know would be lost when it writes
  the document.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, ForbiddenError, NotFoundError
from wharfinger.cluster.objects.lookup import is_namespace_deleted
from wharfinger.cluster.records.release import Release
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    canonical_json,
    decode_json,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
)
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.lifecycle.applied_stamp import digest_of, newest_stamp
from wharfinger.runtime.lifecycle.way_back_record import (
    ReadyRevision,
    Rollback,
    read_ready,
    read_rollback,
    ready_document,
    rollback_document,
)
from wharfinger.runtime.resources.identity import AppId, PackageId
from wharfinger.runtime.resources.resources import SECRET

STATE_TYPE: Final = "wharfinger.dev/package-state"
STATE_KEY: Final = "state.json"
PACKAGE_LABEL: Final = "wharfinger.dev/package"
SCHEMA: Final = 5
MAX_STATE: Final = 1024 * 1024
"""The API server's limit on the size of a Secret."""


class PackageStateError(ClusterError):
    """The recorded state cannot be read, or is too large to be written. A retry does not help; a user has to act."""

    transient = False


@dataclass(frozen=True, slots=True)
class PackageState:
    """The recorded state of a package; empty fields if nothing is recorded.

    ``source``, ``version`` and ``digest`` identify the installed package. ``started`` has the onStartup hooks that are done
    for that digest, and ``patches`` has the patches to the values that hooks made, compacted.

    ``applied`` is the fingerprint of the last complete reconciliation, ``values`` is the checksum of the values at the end of
    that reconciliation, and ``settings`` is the checksum of the settings at its beginning. If ``applied`` and ``values`` were
    read from the stamp of ``revision``, they are only digests of this fingerprint and this checksum.
    """

    source: str = ""
    version: str = ""
    digest: str = ""
    started: frozenset[str] = frozenset()
    patches: tuple[JsonValue, ...] = field(default=(), repr=False)
    applied: str = ""
    values: str = ""
    settings: str = ""
    configured: JsonObject | None = field(default=None, repr=False)
    """The settings that last passed Configure, in the newest version of the schema; recorded only for packages whose schema
    has a rule that compares new settings with them.
    """
    configured_version: int = 0
    """The version of the schema for which the settings in ``configured`` are written; 0 if it is not known."""
    withdrawn: bool = False
    """True if the package was removed from the cluster, all of its delete hooks have run, and nothing was applied after that."""
    forced: str = ""
    reset: str = ""
    """The value of the annotation with which a user last requested a reset; that reset is done or about to be done.
    ``forced`` is the same for a forced reconciliation.
    """
    synchronized: tuple[tuple[str, str], ...] = ()
    """The checksums of the objects that hooks have seen, by binding (``hooks/pods.sh#0``), sorted.

    A binding is left out while its hook has yet to run for changed objects.
    """

    made: frozenset[str] = frozenset()
    """The kinds (such as ``apps/v1/Deployment``) of the objects that the package's hooks may have created. The objects are
    deleted when the package is uninstalled.
    """

    ready: ReadyRevision | None = None
    """The revision with which the package was last Ready; recorded only for packages whose upgrades may be rolled back."""
    rollback: Rollback | None = None
    """The rollback in effect, which `ready_as` ends; None if there is none."""
    rollback_asked: str = ""
    """The value of the annotation in the user's last completed request for a rollback."""
    revision: int = 0
    """The revision of the release when ``applied`` was recorded; 0 if no revision was recorded. Older daemons recorded no
    revision, and wrote no stamps (`applied_stamp`) into the records of releases.
    """

    def installed(self, source: str, version: str, digest: str) -> "PackageState":
        """Record an installed version. If the digest changes, the onStartup hooks and the synchronizations of hooks count as
        not done any more. If the package changes, the configured settings are forgotten.
        """
        same = digest == self.digest
        started = self.started if same else frozenset[str]()
        synchronized = self.synchronized if same else ()
        known = self if source.rpartition(" ")[2] == self.source.rpartition(" ")[2] else self.configured_as(None)
        return replace(known, source=source, version=version, digest=digest, started=started, synchronized=synchronized)

    def heard(self, *, forced: str, reset: str) -> "PackageState":
        """Record the users' requests that the installation carries out: ``forced`` for a new download, ``reset`` for a reset.
        If the reset is new, also make the hooks start over (`started_anew`), and forget the former settings.
        """
        anew = self.started_anew().configured_as(None) if reset != self.reset else self
        return replace(anew, forced=forced, reset=reset)

    def configured_as(self, settings: JsonObject | None, version: int = 0) -> "PackageState":
        """Record the settings that passed the task Configure, and the version of their schema. Later settings are compared
        with them.

        ``settings`` is None if there is nothing to compare with: the schema has no rule that compares settings, a user
        requested a reset, or another package replaced this one.
        """
        return replace(self, configured=settings, configured_version=version)

    def startup_done(self, hook: str) -> "PackageState":
        """Record that an onStartup hook is done for the installed digest."""
        return replace(self, started=self.started | {hook})

    def started_anew(self) -> "PackageState":
        """Record that the hooks start over, and that their patches to the values are dropped. The fields about the applied
        state are emptied.
        """
        return replace(self, started=frozenset(), patches=(), applied="", values="", settings="", synchronized=())

    def patched(self, patches: tuple[JsonValue, ...]) -> "PackageState":
        """Record the patches of hooks to the values."""
        return replace(self, patches=patches)

    def applied_as(self, fingerprint: str, values: str, settings: str, revision: int = 0) -> "PackageState":
        """Record a complete reconciliation. Three empty texts record that the applied objects are being removed."""
        return replace(
            self, applied=fingerprint, values=values, settings=settings, revision=max(revision, self.revision)
        )

    def stamped_as(self, revision: int, stamp: str) -> "PackageState":
        """Return the state with ``revision``, and with the digests in the stamp of this revision. If the state has this or a
        later revision already, return it unchanged.
        """
        if revision <= self.revision:
            return self
        fingerprint, _, values = stamp.partition(".")
        return replace(self, applied=fingerprint, values=values, revision=revision)

    def is_of(self, fingerprint: str) -> bool:
        """Return whether this is the fingerprint of the last completed reconciliation."""
        return self.applied in (fingerprint, digest_of(fingerprint))

    def is_applied(self, fingerprint: str, values: str) -> bool:
        """Return whether the last completed reconciliation had this fingerprint, and ended with values of this checksum."""
        return self.is_of(fingerprint) and self.values in (values, digest_of(values))

    def ready_as(self, ready: ReadyRevision, generation: int) -> "PackageState":
        """Record that the package is Ready with the revision ``ready``.

        A rollback ends, except in two cases: the resource asks for another state than that of the revision; or the resource
        follows a range of versions and has not changed since the rollback, but now asks for another version.
        """
        kept = self.rollback
        if kept is not None and ready.asked and (kept.asked == ready.asked or kept.generation != generation):
            kept = None
        return replace(self, ready=ready, rollback=kept)

    def rolled_back(self, rollback: Rollback, request: str = "") -> "PackageState":
        """Record a rollback. ``request`` is the user's request that led to it; "" if there was none."""
        return replace(self, rollback=rollback, rollback_asked=request or self.rollback_asked)

    def answered(self, request: str) -> "PackageState":
        """Record that a user's request for a rollback was processed without a rollback, because none is needed."""
        return replace(self, rollback_asked=request)

    def uninstalled(self) -> "PackageState":
        """Record that nothing of the package is in the cluster any more, and that its delete hooks have run."""
        return replace(self, withdrawn=True)

    def synchronized_with(self, known: Mapping[str, str]) -> "PackageState":
        """Record the checksums of the objects that hooks know, by binding, in place of all checksums recorded before."""
        return replace(self, synchronized=tuple(sorted(known.items())))

    def may_have_made(self, kinds: Iterable[str]) -> "PackageState":
        """Record that hooks of the package are about to create objects of these kinds."""
        return replace(self, made=self.made | frozenset(kinds))

    def collected(self) -> "PackageState":
        """Record that the objects made by the package's hooks are gone."""
        return replace(self, made=frozenset())

    def placed(self) -> "PackageState":
        """Record that there may be objects of the package in the cluster from now on."""
        return replace(self, withdrawn=False)


@dataclass(slots=True)
class StateRecord:
    """The recorded state of one package, and the key of its Secret. Call `read` before `update`, which writes with a
    compare-and-set.
    """

    client: ClusterClient
    key: ObjectKey
    package: str
    state: PackageState = field(default_factory=PackageState)
    _version: str = ""
    _stamp: tuple[int, str] = (0, "")
    _uncertain: bool = False
    _updating: trio.Lock = field(default_factory=trio.Lock)

    async def read(self) -> PackageState:
        """Read and return the recorded state; an empty state if the Secret does not exist. Raises ClusterError."""
        try:
            secret = await self.client.get(self.key)
        except NotFoundError:
            self.state, self._version = PackageState(), ""
            return self.state
        return self.restore(secret)

    def restore(self, secret: JsonObject) -> PackageState:
        """Use and return the state in this Secret, which was just read from the cluster. Raises PackageStateError."""
        try:
            self.state = decoded(secret).stamped_as(*self._stamp)
        except (FormatError, binascii.Error) as error:
            raise PackageStateError(
                f"{self.key}: the recorded state of {self.package} cannot be read: {error}; delete the Secret to "
                "start without a recorded state (one-time hooks then run again)"
            ) from error
        self._version = find_str(secret, "metadata", "resourceVersion")
        return self.state

    def compare(self, history: Sequence[Release]) -> None:
        """Adopt the checksums in the newest stamp of the release's records, if the stamp belongs to a later revision than the
        recorded state.

        A state that was deleted, or never written, stays empty.
        """
        self._stamp = newest_stamp(history)
        if self._version:
            self.state = self.state.stamped_as(*self._stamp)

    async def update(self, change: Callable[[PackageState], PackageState]) -> None:
        """Write the state that ``change`` returns for the current state; one update runs at a time.

        If another writer has changed the Secret, the new state is read and passed to ``change`` again. Raises ClusterError.
        """
        async with self._updating:
            if self._uncertain:
                await self.read()
            # The state counts as unread until the answer arrives: if the answer is lost, the API server may have written the
            # state nevertheless.
            self._uncertain = True
            try:
                await self._write(change(self.state))
            except ConflictError:
                await self.read()
                await self._write(change(self.state))
            self._uncertain = False

    async def _write(self, state: PackageState) -> None:
        if state == self.state and self._version:
            return
        body = encoded(self.key, self.package, state)
        if not self._version:
            version = await self._create(body)
        else:
            find_object(body, "metadata")["resourceVersion"] = self._version
            try:
                version = find_str(await self.client.replace(body), "metadata", "resourceVersion")
            except NotFoundError:  # a person has deleted the Secret, to start without a recorded state
                find_object(body, "metadata").pop("resourceVersion")
                version = await self._create(body)
        self.state, self._version = state, version

    async def _create(self, body: JsonObject) -> str:
        """Create the Secret, and return its resourceVersion; "" if the namespace is being deleted, so that the Secret is not
        needed.
        """
        try:
            return find_str(await self.client.create(body), "metadata", "resourceVersion")
        except (ForbiddenError, NotFoundError):
            if await is_namespace_deleted(self.client, self.key.namespace):
                return ""
            raise

    async def delete(self) -> None:
        """Delete the Secret, if it exists. Raises ClusterError."""
        with suppress(NotFoundError):
            await self.client.delete(self.key)
        self.state, self._version = PackageState(), ""


def state_record(client: ClusterClient, identity: PackageId) -> StateRecord:
    """Return the `StateRecord` of a package, which has not been read yet. Its Secret is ``wharfinger.app.<instance>`` or
    ``wharfinger.module.<name>`` in the package's namespace.
    """
    kind = "app" if isinstance(identity, AppId) else "module"
    return StateRecord(
        client, ObjectKey(SECRET, identity.namespace, f"wharfinger.{kind}.{identity.release}"), identity.name
    )


def encoded(key: ObjectKey, package: str, state: PackageState) -> JsonObject:
    """Return the Secret that stores the state of a package. Raises PackageStateError if it would be too large."""
    started = list[JsonValue](sorted(state.started))
    document: JsonObject = {
        "schema": SCHEMA,
        "source": state.source,
        "version": state.version,
        "digest": state.digest,
        "started": started,
        "patches": list(state.patches),
        "applied": state.applied,
        "values": state.values,
        "settings": state.settings,
        "revision": state.revision,
        "configured": state.configured,
        "configuredVersion": state.configured_version,
        "withdrawn": state.withdrawn,
        "forced": state.forced,
        "reset": state.reset,
        "synchronized": dict(state.synchronized),
        "made": list[JsonValue](sorted(state.made)),
        "ready": ready_document(state.ready),
        "rollback": rollback_document(state.rollback),
        "rollbackAsked": state.rollback_asked,
    }
    data = base64.b64encode(canonical_json(document)).decode()
    if len(data) > MAX_STATE:
        raise PackageStateError(
            f"{key}: the state of {package} has {len(data)} bytes, more than a Secret can have, because its hooks "
            "have added too much to the values"
        )
    metadata: JsonObject = {"name": key.name, "namespace": key.namespace, "labels": {PACKAGE_LABEL: package}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": STATE_TYPE, "data": {STATE_KEY: data}}


def decoded(secret: Mapping[str, JsonValue]) -> PackageState:
    """Return the state in a Secret. Raises binascii.Error, and FormatError (also if the document has a newer version than
    SCHEMA).
    """
    text = find_str(dict(secret), "data", STATE_KEY).encode(errors="replace")
    data = base64.b64decode(text, validate=True)
    document = as_object(decode_json(data, max_bytes=MAX_STATE, what=STATE_KEY), STATE_KEY)
    schema = find_int(document, "schema", default=1)
    if schema not in range(1, SCHEMA + 1):
        raise FormatError(
            f"its schema is {schema}, but this program reads only 1 to {SCHEMA}; start the version of Wharfinger that wrote it"
        )
    return PackageState(
        source=find_str(document, "source"),
        version=find_str(document, "version"),
        digest=find_str(document, "digest"),
        started=frozenset(find_str(document, "started", index) for index in range(len(find_list(document, "started")))),
        patches=tuple(find_list(document, "patches")),
        applied=find_str(document, "applied"),
        values=find_str(document, "values"),
        settings=find_str(document, "settings"),
        revision=find_int(document, "revision"),
        configured=find_object(document, "configured") if document.get("configured") is not None else None,
        configured_version=find_int(document, "configuredVersion"),
        withdrawn=find(document, "withdrawn") is True,
        forced=find_str(document, "forced"),
        reset=find_str(document, "reset"),
        synchronized=tuple(
            sorted((name, find_str(document, "synchronized", name)) for name in find_object(document, "synchronized"))
        ),
        made=frozenset(find_str(document, "made", index) for index in range(len(find_list(document, "made")))),
        ready=read_ready(document),
        rollback=read_rollback(document),
        rollback_asked=find_str(document, "rollbackAsked"),
    )
