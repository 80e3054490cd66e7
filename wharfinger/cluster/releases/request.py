"""The request to the release engine, and its result."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from wharfinger.cluster.fields.conflicts import FieldConflict
from wharfinger.cluster.health.rules import HealthRule
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.kube.resource import ObjectKey


@dataclass(frozen=True)
class ReleaseRequest:
    """The desired state of a release.

    * ``chart``: the metadata of Chart.yaml. ``values``: the values that the user gave. ``notes``: the chart's NOTES.
    * ``objects``: the objects to apply. ``manifest``: the text that Helm would store for them.
    * ``crds``: the objects of the chart's folder ``crds/``. ``hooks``: the chart's ``helm.sh/hook`` objects.
    * ``labels``: labels for the record.
    * ``prune_to_empty``: True allows a request that would leave the release without objects. Without it, such a request is
      refused, because an empty manifest is usually a mistake.

    ``marks`` are labels that describe the record and not the desired state: if they change, they are put on the last revision,
    and no new revision is made. ``base`` is the source from which the caller made manifest and hooks, in a form that only the
    caller knows; ``base`` is kept in the record.

    ``inputs`` is everything that the caller needs to make the same request again. ``inputs`` is kept in the record; if only
    ``inputs`` changes, it is put on the last revision, and no new revision is made. ``rollback_to`` is the revision that the
    request returns to; 0: the request is not a rollback.

    ``stamp`` is a short text that a new revision gets as a label (STAMP_LABEL). The stamp does not describe the desired
    state, and is not put on existing revisions.
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
    notes: str = ""
    drift: DriftPolicy = field(default_factory=DriftPolicy)
    health: tuple[HealthRule, ...] = ()
    prune_to_empty: bool = False
    marks: Mapping[str, str] = field(default_factory=dict)
    base: bytes = b""
    inputs: bytes = b""
    rollback_to: int = 0
    stamp: str = ""

    @property
    def owner(self) -> Owner:
        """Return the owner of the objects."""
        return Owner(self.name, self.namespace)

    @cached_property
    def fingerprint(self) -> str:
        """Return a checksum of the requested state. Requests with equal fingerprints request the same state."""
        made = hashlib.blake2b(digest_size=16)
        for part in (
            encode_json([self.chart, self.values, dict(self.labels), dict(self.marks), self.notes]),
            self.manifest.encode(),
            self.base,
            self.inputs,
            encode_json([[*self.crds], [*self.objects], [*self.hooks]]),
            repr((self.drift, self.health, self.prune_to_empty)).encode(),
        ):
            made.update(len(part).to_bytes(8, "big"))
            made.update(part)
        return made.hexdigest()


class Outcome(Enum):
    """The effect of an upgrade."""

    INSTALLED = "installed"
    UPGRADED = "upgraded"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """The result of an upgrade.

    ``objects`` are all objects that belong to the release now. ``kept`` are objects that are no longer in the manifest but are
    not deleted, each with the reason. ``left`` has the fields that another manager took over and keeps, because the drift
    policy does not correct them.
    """

    outcome: Outcome
    revision: int
    objects: tuple[ObjectKey, ...]
    pruned: tuple[ObjectKey, ...] = ()
    kept: Mapping[ObjectKey, str] = field(default_factory=dict)
    left: Mapping[ObjectKey, tuple[FieldConflict, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UninstallResult:
    """The result of an uninstall.

    ``found`` is False if the release had no record. In that case, objects were searched by the release's label. ``kept`` lists
    the objects that are not deleted, each with the reason.
    """

    found: bool
    deleted: tuple[ObjectKey, ...] = ()
    kept: Mapping[ObjectKey, str] = field(default_factory=dict)
