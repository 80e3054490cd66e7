"""The validation of ServiceCIDRs and of the IPAddresses in them (networking.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.objects.addresses import cidr_errors, parse_cidr
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, texts
from wharfinger.control_plane.objects.metadata import core_meta_errors, meta_update_errors
from wharfinger.control_plane.objects.name_rules import address_name, segment_name
from wharfinger.control_plane.objects.names import subdomain_problems
from wharfinger.control_plane.wire.field_errors import IMMUTABLE, each, immutable, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

_FIELD: Final = "spec.cidrs"
_SAME_FAMILY: Final = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


def range_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of a ServiceCIDR: it has one range, or two of different families."""
    ranges = texts(one, "spec", "cidrs")
    if not ranges:
        return [required(_FIELD, "at least one CIDR required")]
    if len(ranges) > 2:
        return [invalid(_FIELD, {"CIDRs": [*ranges]}, "may only hold up to 2 values")]
    errors = [error for index, item in enumerate(ranges) for error in cidr_errors(f"{_FIELD}[{index}]", item)]
    families = [parsed[0].version for item in ranges if (parsed := parse_cidr(item))]
    if len(families) == 2 and families[0] == families[1]:
        errors.append(invalid(_FIELD, [*ranges], _SAME_FAMILY))
    return errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed ServiceCIDR: ranges are immutable, but a range of the other IP family may be added."""
    ranges, before = texts(new, "spec", "cidrs"), texts(old, "spec", "cidrs")
    if len(ranges) == len(before):
        pairs = enumerate(zip(ranges, before, strict=True))
        return [invalid(f"{_FIELD}[{index}]", now, IMMUTABLE) for index, (now, then) in pairs if now != then]
    if len(before) == 1 and len(ranges) == 2:
        return immutable(f"{_FIELD}[0]", ranges[0], before[0]) + range_errors(new)
    return [invalid(_FIELD, find(new, "spec", "cidrs"), IMMUTABLE)]


def address_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of an IPAddress: it must name its parent, the object to which it is attached."""
    parent = part(one, "spec", "parentRef")
    if parent is None:
        return [required("spec.parentRef")]
    path, group = "spec.parentRef", text(parent, "group")
    errors = each(f"{path}.group", group, subdomain_problems(group)) if group else []
    for name in ("resource", "name", "namespace"):
        value = text(parent, name)
        if value:
            errors += each(f"{path}.{name}", value, segment_name(value, False))  # noqa: FBT003 - no prefix
        elif name != "namespace":
            errors.append(required(f"{path}.{name}"))
    return errors


def _address_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = core_meta_errors(new, namespaced=False, name=address_name) + address_errors(new)
    errors += meta_update_errors(new, old)
    return errors + immutable("spec.parentRef", _shown_parent(new), _shown_parent(old))


def _shown_parent(one: JsonObject) -> JsonObject | None:
    parent = part(one, "spec", "parentRef")
    names = ("group", "resource", "namespace", "name")
    return None if parent is None else {name.capitalize(): text(parent, name) for name in names}


SERVICE_RANGE_RULES: Final[dict[str, Rules]] = {
    "ServiceCIDR.networking.k8s.io": Rules(create=range_errors, update=_update_errors),
    "IPAddress.networking.k8s.io": Rules(create=address_errors, update=_address_update_errors),
}
