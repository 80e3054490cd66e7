"""How what is applied is kept, and what becomes of it in the end: some fields of a package's resource, read and checked.

``spec.drift`` says what happens to fields that others change, ``spec.healthChecks`` when objects of kinds that only their author
knows are ready, ``spec.deletionPolicy`` what a removal takes along, ``spec.allowEmpty`` that an upgrade may leave nothing. None
of them changes what a chart renders to.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.cluster.health.rules import HealthRule, read_health_rules
from wharfinger.cluster.objects.drift_policy import DriftPolicy, read_drift_policy
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, checksum, find, find_str, type_name

DRIFT: Final = "drift"
HEALTH_CHECKS: Final = "healthChecks"
DELETION_POLICY: Final = "deletionPolicy"
ALLOW_EMPTY: Final = "allowEmpty"


class UpkeepError(FormatError):
    """One of the fields says what cannot be."""


class DeletionPolicy(StrEnum):
    """What a removal takes along."""

    DELETE = "Delete"
    """All but data: volumes and claims, namespaces, definitions of kinds, and what says ``helm.sh/resource-policy: keep``."""
    DELETE_ALL = "DeleteAll"
    """Data too; what says ``keep`` stays all the same."""
    ORPHAN = "Orphan"
    """Nothing: the objects stay, and belong to nobody."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The fields; ``digest`` is of what they say, to be compared."""

    drift: DriftPolicy = DriftPolicy()  # noqa: RUF009 - frozen
    health: tuple[HealthRule, ...] = ()
    deletion: DeletionPolicy = DeletionPolicy.DELETE
    allow_empty: bool = False
    """An upgrade may leave nothing of the release."""
    digest: str = ""


def read_upkeep(spec: JsonObject) -> Upkeep:
    """What a spec says. Raises FormatError, naming the field."""
    deletion = read_deletion(spec)
    drift, health, empty = (find(spec, name) for name in (DRIFT, HEALTH_CHECKS, ALLOW_EMPTY))
    if not isinstance(empty, bool | None):
        raise UpkeepError(f"spec.{ALLOW_EMPTY}: expected true or false, found {type_name(empty)}")
    kept: JsonObject = {DRIFT: drift, HEALTH_CHECKS: health, ALLOW_EMPTY: empty}
    return Upkeep(
        drift=DriftPolicy() if drift is None else read_drift_policy(drift, f"spec.{DRIFT}"),
        health=() if health is None else read_health_rules(health, f"spec.{HEALTH_CHECKS}"),
        deletion=deletion,
        allow_empty=empty is True,
        digest=checksum(kept) if any(said is not None for said in kept.values()) else "",
    )


def read_deletion(spec: JsonObject) -> DeletionPolicy:
    """The one field that a removal asks for, whatever is wrong with the others. Raises FormatError, naming it."""
    said = find_str(spec, DELETION_POLICY, default=DeletionPolicy.DELETE)
    if said not in set(DeletionPolicy):
        known = ", ".join(policy.value for policy in DeletionPolicy)
        raise UpkeepError(f"spec.{DELETION_POLICY}: {said!r:.80} is none of {known}")
    return DeletionPolicy(said)
