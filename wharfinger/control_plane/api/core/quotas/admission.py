"""The ResourceQuota plugin: a write that exceeds a quota of its namespace is refused, and the use by any other write is
added to the quota.

A quota applies as soon as a controller has written hard limits and use into its status. The plugin adds the use by a write to
the status of the quota immediately. Otherwise, the next write could exceed the quota before the controller has counted the
first one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.api.common.admission import Admission, Operation, Plugin, Writer
from wharfinger.control_plane.api.core.quotas.usage import (
    IGNORED,
    Amounts,
    added,
    in_scope,
    increase,
    matching_resources,
    unspecified,
    usage,
)
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.merging.managed_fields import record_update
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.quantities import amount

MANAGER: Final = "kube-apiserver"
_QUOTAS: Final = Collection("", "resourcequotas")
_UPDATED: Final = frozenset({"Service", "PersistentVolumeClaim"})


@dataclass(frozen=True, slots=True)
class Charge:
    """A quota, and its use after the write."""

    quota: JsonObject
    used: Amounts


def check_quota(admission: Admission) -> None:
    """Refuse a write that exceeds a quota. Raises StatusError (403)."""
    _charges(admission)


def charge_quota(admission: Admission, writer: Writer) -> None:
    """Store the new use in the status of each quota that the write affects."""
    for charge in _charges(admission):
        before = charge.quota
        shown: JsonObject = {**(part(before, "status") or {}), "used": dict[str, JsonValue](charge.used)}
        new = record_update(
            before,
            {**before, "status": shown},
            manager=MANAGER,
            subresource="status",
            now=writer.now(),
            lists=builtin_list_types("", "v1", "ResourceQuota"),
        )
        writer.put(Key(_QUOTAS, admission.namespace, text(before, "metadata", "name")), new)


def _charges(admission: Admission) -> list[Charge]:
    """Return the quotas that the write affects, with their new use. Raises StatusError (403) if the write exceeds a quota."""
    obj = admission.obj
    if obj is None or not admission.namespace or not admission.kind.namespaced or not _handles(admission):
        return []
    quotas: Sequence[JsonObject] = admission.view.objects("", "resourcequotas", admission.namespace)
    if not quotas:
        return []
    resource = admission.kind.resource
    interested = [
        (quota, names)
        for quota in quotas
        if (names := matching_resources(resource, part(quota, "status", "hard") or {}))
        and in_scope(quota, resource, obj)
    ]
    for quota, names in interested:
        _check_countable(admission, quota, names)
    now = admission.view.now()
    taken = usage(resource, obj, now)
    charges = []
    for quota, _names in interested:
        more = taken
        if admission.old is not None and in_scope(quota, resource, admission.old):
            more = increase(taken, usage(resource, admission.old, now))
        if charge := _charge(admission, quota, more):
            charges.append(charge)
    return charges


def _handles(admission: Admission) -> bool:
    """Return whether the write may change the use of quotas."""
    kind = admission.kind
    if kind.resource in IGNORED:
        return False
    if admission.subresource:
        return kind.group_kind == "Pod" and admission.subresource == "resize"
    if admission.operation is Operation.CREATE:
        return True
    if admission.operation is not Operation.UPDATE:
        return False
    if kind.group_kind == "Pod":
        new, old = (find(item, "spec", "activeDeadlineSeconds") for item in (admission.obj, admission.old))
        return (new is None) is not (old is None)
    return kind.group_kind in _UPDATED


def _check_countable(admission: Admission, quota: JsonObject, names: list[str]) -> None:
    """Refuse a write that cannot be counted. Raises StatusError (403).

    A write cannot be counted if the use of the quota is not known yet, or if a container of the written Pod does not specify
    a resource that the quota counts.
    """
    name = text(quota, "metadata", "name")
    if admission.kind.group_kind == "Pod" and admission.obj is not None:
        missing = unspecified(admission.obj, names)
        if missing:
            raise _refused(admission, f"failed quota: {name}: must specify {missing}")
    used = part(quota, "status", "used") or {}
    if any(item not in used for item in names):
        raise _refused(admission, f"status unknown for quota: {name}, resources: {','.join(names)}")


def _charge(admission: Admission, quota: JsonObject, more: Amounts) -> Charge | None:
    hard, used = part(quota, "status", "hard") or {}, part(quota, "status", "used") or {}
    asked = {name: value for name, value in more.items() if amount(value) and name in hard}
    if not asked:
        return None
    total = added(used, asked)
    exceeded = sorted(name for name in asked if amount(total[name]) > amount(hard[name]))
    if exceeded and admission.subresource != "status":
        said = (_listed(amounts, exceeded) for amounts in (asked, used, hard))
        requested, current, limited = said
        what = f"requested: {requested}, used: {current}, limited: {limited}"
        raise _refused(admission, f"exceeded quota: {text(quota, 'metadata', 'name')}, {what}")
    return Charge(quota, total)


def _listed(amounts: "JsonObject | Amounts", names: list[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names if name in amounts)


def _refused(admission: Admission, why: str) -> StatusError:
    return status.forbidden(admission.kind, admission.name, why)


QUOTA_PLUGIN: Final = Plugin(
    "ResourceQuota",
    frozenset({Operation.CREATE, Operation.UPDATE}),
    check=check_quota,
    charge=charge_quota,
)
