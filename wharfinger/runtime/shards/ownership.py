"""The owner of an Application: exactly one shard at a time, which is recorded in the Application itself. Pure.

The label of a namespace names the shard that *should* manage its Applications; ``status.shard`` of an Application names its
owner, the shard that *does* manage it. Only the owner acts on an Application. Only the owner hands the Application over: it
first stops all work on it, and then writes the next owner with a compare-and-set. So a label that changes at any moment, or
is seen late by some daemons, never makes two daemons act on one Application.

=======================  ===========================  ==================================================================
owner                    the label names              verdict
=======================  ===========================  ==================================================================
none                     this shard                   CLAIM; for the main shard OURS, because the finalizer is the claim
this shard               this shard                   OURS
this shard               another shard                HAND_OVER, or OURS if it is being deleted: a removal is finished here
another shard            this shard                   AWAITED: the owner hands it over, or the owner's Lease is seized
anything else                                         FOREIGN
=======================  ===========================  ==================================================================

An Application has no owner as long as it has neither the finalizer FINALIZER nor a status. The main shard's name is "", and an
Application with a status without a shard belongs to the main shard, so nothing changes in a cluster without shards.
"""

import re
from enum import Enum
from typing import Final

from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import APPLICATION, FINALIZER, finalizers_of, is_deleting

SHARD_LABEL: Final = "wharfinger.dev/shard"
SHARD_FIELD: Final = "shard"
"""The field of an Application's status that names its owner."""
MAIN: Final = ""
"""The shard of namespaces without the label, and of everything that belongs to no namespace."""
LEASE_FAMILY: Final = "wharfinger"
"""The name of the main daemon's Lease. The names of other shards' Leases begin with it."""
MAX_NAME: Final = 40
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")


class Verdict(Enum):
    """The relation of an Application to one shard. The table at the top of this module defines each member."""

    OURS = "ours"
    CLAIM = "claim"
    HAND_OVER = "hand over"
    AWAITED = "awaited"
    FOREIGN = "foreign"


def owner_of(obj: JsonObject) -> str | None:
    """Return the shard that owns an Application; None if it has no owner yet."""
    named = find_str(obj, "status", SHARD_FIELD)
    if named or FINALIZER in finalizers_of(obj) or find_object(obj, "status"):
        return named
    return None


def judge(shard: str, key: ObjectKey, obj: JsonObject, wanted: str) -> Verdict:
    """Return the relation of a resource to ``shard``; ``wanted`` is the shard that the label of its namespace names.

    A Module belongs to the main shard.
    """
    if key.resource != APPLICATION:
        return Verdict.OURS if shard == MAIN else Verdict.FOREIGN
    owner = owner_of(obj)
    if owner is None:
        if wanted != shard:
            return Verdict.FOREIGN
        return Verdict.OURS if shard == MAIN else Verdict.CLAIM
    if owner == shard:
        return Verdict.OURS if wanted == shard or is_deleting(obj) else Verdict.HAND_OVER
    return Verdict.AWAITED if wanted == shard else Verdict.FOREIGN


def lease_name(shard: str) -> str:
    """Return the name of a shard's Lease, in the namespace of the daemons."""
    return f"{LEASE_FAMILY}-{shard}" if shard else LEASE_FAMILY


def shard_problem(name: str) -> str:
    """Return the problem with the name of a shard; empty if the name is valid."""
    if len(name) <= MAX_NAME and _NAME.match(name):
        return ""
    return (
        f"{name[:MAX_NAME]!r} is not the name of a shard: expected at most {MAX_NAME} lowercase letters, digits and hyphens, "
        "with a letter or a digit at both ends"
    )
