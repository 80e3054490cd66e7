"""The next number of replicas of each ReplicaSet of a Deployment. Pure. "Set" means ReplicaSet in this module.

Source: kube-controller-manager's deployment controller (rolling update, proportional scaling).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.controllers.framework.objects import annotation, name_of, number_in, replicas_of
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_str

DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"


@dataclass(frozen=True, slots=True)
class Scale:
    """A ReplicaSet and its new number of replicas."""

    one: JsonObject
    replicas: int


def bounds(deployment: JsonObject) -> tuple[int, int]:
    """Return how many Pods may be added and how many may be unavailable (``maxSurge``, ``maxUnavailable``)."""
    if find_str(deployment, "spec", "strategy", "type", default="RollingUpdate") != "RollingUpdate":
        return 0, 0
    wanted = replicas_of(deployment)
    given = find(deployment, "spec", "strategy", "rollingUpdate")
    surge = share(find(given, "maxSurge"), wanted, up=True)
    unavailable = share(find(given, "maxUnavailable"), wanted, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, wanted)


def share(value: JsonValue, whole: int, *, up: bool) -> int:
    """Return the count that ``value`` states: a number, or a percentage of ``whole``, which is rounded up or down. An absent
    value means 25 %, an invalid one 0.
    """
    if isinstance(value, int):
        return max(value, 0)
    text = value.removesuffix("%") if isinstance(value, str) else "25"
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        return 0
    exact = int(text) * whole / 100
    return math.ceil(exact) if up else math.floor(exact)


def total(sets: Sequence[JsonObject]) -> int:
    """Return the total number of replicas of all sets."""
    return sum(map(replicas_of, sets))


def new_set_replicas(deployment: JsonObject, sets: Sequence[JsonObject], current: int) -> int:
    """Return the next number of replicas of the set of the current template.

    ``current`` is the present number of replicas of this set, and ``sets`` are all existing sets of the Deployment.
    """
    wanted = replicas_of(deployment)
    if find_str(deployment, "spec", "strategy", "type", default="RollingUpdate") != "RollingUpdate":
        return wanted
    room = wanted + bounds(deployment)[0] - total(sets)
    return current if room <= 0 else current + min(room, wanted - current)


def scaled_down(deployment: JsonObject, new: JsonObject, old: Sequence[JsonObject]) -> list[Scale]:
    """Return the new scales of the old sets: first their unavailable Pods are removed, then as many available Pods as
    ``maxUnavailable`` allows.
    """
    everything = total([*old, new])
    floor = replicas_of(deployment) - bounds(deployment)[1]
    unready_new = replicas_of(new) - find_int(new, "status", "availableReplicas")
    most = everything - floor - unready_new
    if most <= 0:
        return []
    wanted = {name_of(one): replicas_of(one) for one in old}
    left = most
    for one in _oldest_first(old):
        spare = wanted[name_of(one)] - find_int(one, "status", "availableReplicas")
        taken = max(min(spare, left), 0)
        wanted[name_of(one)] -= taken
        left -= taken
    available = sum(find_int(one, "status", "availableReplicas") for one in (*old, new))
    left = available - floor
    for one in _oldest_first(old):
        taken = max(min(wanted[name_of(one)], left), 0)
        wanted[name_of(one)] -= taken
        left -= taken
    return [Scale(one, wanted[name_of(one)]) for one in old if wanted[name_of(one)] != replicas_of(one)]


def proportional(deployment: JsonObject, sets: Sequence[JsonObject]) -> list[Scale]:
    """Return the new scales of the sets if the Deployment is scaled during a rollout: each gets its share of the new total."""
    surge = bounds(deployment)[0]
    allowed = replicas_of(deployment) + surge if replicas_of(deployment) > 0 else 0
    have = total(sets)
    to_add = allowed - have
    ordered = sorted(sets, key=lambda one: (replicas_of(one), name_of(one)), reverse=True)
    made: list[Scale] = []
    added = 0
    for one in ordered:
        share = 0
        if to_add and have:
            before = number_in(annotation(one, MAXIMUM)) or replicas_of(deployment)
            exact = round(replicas_of(one) * allowed / before) - replicas_of(one)
            rest = to_add - added
            share = min(exact, rest) if to_add > 0 else max(exact, rest)
        made.append(Scale(one, replicas_of(one) + share))
        added += share
    if made and to_add != added:
        made[0] = Scale(made[0].one, max(made[0].replicas + to_add - added, 0))
    return made


def desired_of(one: JsonObject) -> int | None:
    """Return the number of replicas that the Deployment had when the set was last scaled, from an annotation of the set, or
    None.
    """
    return number_in(annotation(one, DESIRED))


def _oldest_first(sets: Sequence[JsonObject]) -> list[JsonObject]:
    return sorted(sets, key=lambda one: (find_str(one, "metadata", "creationTimestamp"), name_of(one)))
