"""Write and delete the objects of one release: checked first, in Helm's order, a few at a time.

Each kind is one wave: what is of one kind does not need each other and is written together; the next kind waits. A wave of
CustomResourceDefinitions is over when all of them are established, so that the objects after it can be what they define.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.concurrently import each
from wharfinger.cluster.errors import ConflictError, NotFoundError, UnknownKindError
from wharfinger.cluster.install_order import in_waves
from wharfinger.cluster.object_waits import Progress, wait_gone, wait_ready
from wharfinger.cluster.ownership import PROTECTED, Owner, check_owner, is_kept, owned, owner_of, placed
from wharfinger.cluster.release import ReleaseError
from wharfinger.cluster.resource import ObjectKey, kind_of, name_of, namespace_of, split_api_version
from wharfinger.formats.json_value import JsonObject, find_str

CRD: Final = "CustomResourceDefinition.apiextensions.k8s.io"
CONCURRENCY: Final = 8
HELM_MANAGERS: Final = frozenset({"helm", "helm3", "helm4"})
"""Under these names a person's helm wrote, for the same release: what it owns is taken without asking."""
_OTHER_MANAGER: Final = re.compile(r'conflicts? with "((?:[^"\\]|\\.)*)"')


class CrdError(ReleaseError):
    """A CustomResourceDefinition was not accepted."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """What became of objects that were to be deleted: those asked to go (with UIDs), and those left, each with its reason."""

    deleted: dict[ObjectKey, str] = field(default_factory=dict)
    kept: dict[ObjectKey, str] = field(default_factory=dict)


class Applier:
    """Writes for one owner. Made per operation; remembers which objects it has checked."""

    def __init__(
        self, client: ClusterClient, owner: Owner, *, field_manager: str, force: bool, progress: Progress
    ) -> None:
        self._client = client
        self._owner = owner
        self._field_manager = field_manager
        self._force = force
        self._progress = progress
        self._checked: set[ObjectKey] = set()

    async def key_of(self, obj: JsonObject) -> ObjectKey:
        """The key of an object of the release. Raises UnknownKindError."""
        resource = await self._client.resource_type(*kind_of(obj))
        namespace = (namespace_of(obj) or self._owner.namespace) if resource.namespaced else ""
        return ObjectKey(resource, namespace, name_of(obj))

    async def check(self, objects: Sequence[JsonObject], crds: Sequence[JsonObject]) -> None:
        """Before the first write: every kind is known or about to be, no object is somebody else's, none comes twice.

        Raises ForeignObjectError, UnknownKindError, ReleaseError.
        """
        coming = {_defines(crd) for crd in [*crds, *objects]}

        async def look(obj: JsonObject) -> ObjectKey | None:
            try:
                key = await self.key_of(obj)
            except UnknownKindError:
                api_version, kind = kind_of(obj)
                if (split_api_version(api_version)[0], kind) in coming:
                    return None
                raise
            await self._check_live(key)
            return key

        keys = [key for key in await each(objects, look, limit=CONCURRENCY) if key is not None]
        seen: set[ObjectKey] = set()
        for key in keys:
            if key in seen:
                raise ReleaseError(f"release {self._owner}: its manifest has {key} twice; rename one in the chart")
            seen.add(key)

    async def apply_crds(self, crds: Iterable[JsonObject]) -> list[ObjectKey]:
        """Apply definitions from a chart's ``crds/``, and wait until they are established; they belong to no release."""

        async def write(crd: JsonObject) -> ObjectKey:
            key = await self.key_of(crd)
            await self._client.apply(placed(crd, key), field_manager=self._field_manager, force=self._force)
            return key

        return await self._established(await each(crds, write, limit=CONCURRENCY))

    async def apply(self, objects: Iterable[JsonObject]) -> dict[ObjectKey, str]:
        """Apply all, in Helm's order; what was written, with UIDs."""
        written: dict[ObjectKey, str] = {}
        for wave in in_waves(objects):
            done = dict(await each(wave, self._write, limit=CONCURRENCY))
            await self._established([key for key in done if key.resource.group_kind == CRD])
            written |= done
        return written

    async def delete(
        self,
        objects: Iterable[JsonObject],
        *,
        keep: Mapping[ObjectKey, str] | None = None,
        delete_protected: bool = False,
    ) -> Deletion:
        """Delete in reverse order, except ``keep`` and what :mod:`~wharfinger.cluster.ownership` keeps; do not wait.

        ``keep`` has UIDs: the same object may have other names in another version or group of the API.
        """
        uids = frozenset((keep or {}).values())
        result = Deletion()

        async def remove(obj: JsonObject) -> None:
            try:
                key = await self.key_of(obj)
                if key in (keep or {}) or key in result.deleted:
                    return
                live = await self._client.get(key)
            except (NotFoundError, UnknownKindError):
                return  # gone, or its kind is no longer served, and all of it went with the definition
            uid = find_str(live, "metadata", "uid")
            if uid in uids:
                return
            why = self._why_kept(key, obj, live, delete_protected=delete_protected)
            if why:
                result.kept[key] = why
                return
            with suppress(NotFoundError, ConflictError):  # another object has the name by now: not ours
                await self._client.delete(key, uid=uid)
                result.deleted[key] = uid

        for wave in reversed(in_waves(objects)):
            await each(wave, remove, limit=CONCURRENCY)
        return result

    def _why_kept(self, key: ObjectKey, obj: JsonObject, live: JsonObject, *, delete_protected: bool) -> str:
        owner = owner_of(live)
        if owner != self._owner:
            return f"belongs to {owner}" if owner.name else "belongs to no release any more"
        if is_kept(obj) or is_kept(live):
            return "helm.sh/resource-policy: keep"
        if key.resource.group_kind in PROTECTED and not delete_protected:
            return f"{key.resource.kind} objects are only deleted when asked to"
        return ""

    async def _check_live(self, key: ObjectKey) -> None:
        with suppress(NotFoundError):
            check_owner(key, await self._client.get(key), self._owner)
        self._checked.add(key)

    async def _write(self, obj: JsonObject) -> tuple[ObjectKey, str]:
        key = await self.key_of(obj)
        if key not in self._checked:
            await self._check_live(key)
        wanted = owned(placed(obj, key), self._owner)
        written = await self._apply(wanted)
        if find_str(written, "metadata", "deletionTimestamp"):
            # It was on its way out: what was just written goes with it. Its successor is what is wanted.
            await wait_gone(self._client, {key: find_str(written, "metadata", "uid")}, progress=self._progress)
            written = await self._apply(wanted)
        return key, find_str(written, "metadata", "uid")

    async def _apply(self, wanted: JsonObject) -> JsonObject:
        """Raises ConflictError where others than Helm own fields that are to change."""
        try:
            return await self._client.apply(wanted, field_manager=self._field_manager, force=self._force)
        except ConflictError as error:
            others = set(_OTHER_MANAGER.findall(error.message))
            if not others or not others <= HELM_MANAGERS:
                raise
        return await self._client.apply(wanted, field_manager=self._field_manager, force=True)

    async def _established(self, keys: list[ObjectKey]) -> list[ObjectKey]:
        report = await wait_ready(self._client, keys, progress=self._progress)
        for key, state in report.failed.items():
            raise CrdError(f"{key}: not accepted: {state.message}")
        return keys


def _defines(obj: JsonObject) -> tuple[str, str]:
    """Group and kind that a CustomResourceDefinition defines."""
    if kind_of(obj)[1] != "CustomResourceDefinition":
        return "", ""
    return find_str(obj, "spec", "group"), find_str(obj, "spec", "names", "kind")
