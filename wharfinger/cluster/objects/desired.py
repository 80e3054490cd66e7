"""The desired objects: one row for each object of every release, in one table.

The release engine writes the rows, and the reconciler makes the cluster match them. Drift and health are judged by comparing
the cluster with the rows. A row has all that is needed to apply its object again, so no chart or record is read for that. An
object is identified without its version (`Identity`): it is the same object in every API version that a chart may use, and it
has one owner. A row keeps its object in packed form (`PackedJson`): ten thousand parsed objects take half a gigabyte, and
packed they take a tenth of that.
"""

import sys
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.install_order import wave_of
from wharfinger.cluster.objects.ownership import ForeignObjectError, Owner, owned, placed
from wharfinger.cluster.tables.snapshot import Index, Snapshot
from wharfinger.cluster.tables.table import Table
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, as_object, checksum, encode_json, find_object
from wharfinger.kube.resource import ObjectKey

DIGEST_ANNOTATION: Final = "wharfinger.dev/applied-digest"
"""The annotation with the digest of the row for which an object was applied. It is set if no release record contained this row
when the object was applied.
"""


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """One object, independent of the version in which it is written: ``Identity("Deployment.apps", "prod", "web")``."""

    group_kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the identity as text: ``Deployment.apps prod/web``."""
        return f"{self.group_kind} {self.namespace}/{self.name}" if self.namespace else f"{self.group_kind} {self.name}"


def identity_of(key: ObjectKey) -> Identity:
    """Return the key without its version."""
    return Identity(sys.intern(key.resource.group_kind), key.namespace, key.name)


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """One row: the object to apply, with labels and annotations; ``digest`` is the digest of its text.

    ``wave``: the wave in which the object is applied (:mod:`~wharfinger.cluster.objects.install_order`). ``orphan``: removing
    the row does not delete the object. ``marked``: the object is applied with DIGEST_ANNOTATION, so that every later process
    knows that it was applied for this row.
    """

    key: ObjectKey
    owner: Owner
    wave: int
    body: PackedJson
    digest: str
    drift: DriftPolicy = field(default_factory=DriftPolicy)
    orphan: bool = False
    marked: bool = False
    identity: Identity = field(init=False, compare=False, repr=False)
    """The key of the object without its version, by which tables and caches find the row. It is made once for each row, so that
    they can share it.
    """

    def __post_init__(self) -> None:
        """Make the identity from the key."""
        object.__setattr__(self, "identity", identity_of(self.key))

    @property
    def group(self) -> Hashable:
        """Return the group whose progress includes this row: one wave of one release."""
        return self.owner, self.wave

    def as_orphan(self) -> "DesiredObject":
        """Return the row as an orphan, so that its removal leaves the object in the cluster."""
        return replace(self, orphan=True)

    def object(self) -> JsonObject:
        """Return the object, parsed."""
        return as_object(self.body.value(), str(self.key))

    def to_apply(self) -> JsonObject:
        """Return the object as it is sent to the API server."""
        obj = self.object()
        if not self.marked:
            return obj
        metadata = find_object(obj, "metadata")
        annotations: JsonObject = {**find_object(metadata, "annotations"), DIGEST_ANNOTATION: self.digest}
        return {**obj, "metadata": {**metadata, "annotations": annotations}}


def desired_object(key: ObjectKey, owner: Owner, obj: JsonObject, drift: DriftPolicy) -> DesiredObject:
    """Return the row of an object of a chart."""
    body = owned(placed(obj, key), owner)
    wave = wave_of(key.resource.group, key.resource.kind)
    return DesiredObject(key, owner, wave, PackedJson(encode_json(body)), checksum(body), drift)


DesiredTable: TypeAlias = Table[Identity, DesiredObject]


def desired_table() -> DesiredTable:
    """Return an empty table."""
    return Table(
        "desired",
        lambda row: row.identity,
        indexes={"owner": Index(lambda row: (row.owner,)), "key": Index(lambda row: (row.key,))},
    )


def check_free(rows: Snapshot[Identity, DesiredObject], identity: Identity, owner: Owner) -> None:
    """Check that no other owner has a row for the object. Raises ForeignObjectError."""
    entry = rows.get(identity)
    if entry is not None and entry.row.owner != owner:
        raise ForeignObjectError(
            f"{identity} belongs to the release {entry.row.owner}, so it cannot also be part of {owner}: uninstall "
            "that release, or rename the object in one of the charts"
        )
