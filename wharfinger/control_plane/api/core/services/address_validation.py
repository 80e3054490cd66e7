"""The validation of a Service's own addresses: ``clusterIP``, ``clusterIPs``, ``ipFamilies``, ``ipFamilyPolicy``.

A Service may have two address families (dual stack, KEP-563); the first is primary. The rules are checked before addresses
are allocated, and again as part of the validation of the whole Service.
"""

from typing import Final

from wharfinger.control_plane.objects.addresses import is_ipv6, legacy_ip_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import repeated
from wharfinger.control_plane.wire.field_errors import duplicate, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, strings_of

FAMILIES: Final = ("IPv4", "IPv6")
POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_IPS: Final = "spec.clusterIPs"
_SET: Final = "may not change once set"


def strings(service: JsonObject, name: str) -> list[str]:
    """Return the strings in a list of ``spec``."""
    found = find(service, "spec", name)
    return strings_of(found)


def as_list(service: JsonObject, name: str) -> JsonValue:
    """Return a list in ``spec`` as an error shows it: null if it is absent."""
    return list(found) if (found := strings(service, name)) else None


def headless(service: JsonObject) -> bool:
    """Return whether the service is headless: its only cluster IP is ``None``."""
    return strings(service, "clusterIPs") == ["None"]


def address_errors(service: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """Return the errors of a Service's addresses and families (``ValidateServiceClusterIPsRelatedFields``)."""
    if text(service, "spec", "type") == "ExternalName":
        return []
    errors: list[FieldError] = []
    address, addresses, shown = text(service, "spec", "clusterIP"), strings(service, "clusterIPs"), as_list
    if address and not addresses:
        errors.append(required(_IPS))
    elif address and addresses[0] != address:
        errors.append(invalid(_IPS, shown(service, "clusterIPs"), "first value must match `clusterIP`"))
    elif not address and addresses:
        why = "must be empty when `clusterIP` is not specified"
        errors.append(invalid(_IPS, shown(service, "clusterIPs"), why))
    families = strings(service, "ipFamilies")
    twice = repeated(families)
    for index, family in enumerate(families):
        field = f"spec.ipFamilies[{index}]"
        errors += [] if family in FAMILIES else [not_supported(field, family, FAMILIES)]
        errors += [duplicate(field, family)] if index in twice else []
    policy = find(service, "spec", "ipFamilyPolicy")
    if policy is not None and policy not in POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, POLICIES))
    wrong = _each_address_errors(service, old)
    errors += wrong
    if len(addresses) > 2:
        errors.append(invalid(_IPS, shown(service, "clusterIPs"), "may only hold up to 2 values"))
    return errors if wrong else errors + _pair_errors(service)


def _each_address_errors(service: JsonObject, old: JsonObject | None) -> list[FieldError]:
    addresses = strings(service, "clusterIPs")
    existing = strings(old, "clusterIPs") if old is not None else []
    errors: list[FieldError] = []
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                errors.append(invalid(_IPS, list(addresses), "'None' must be the first and only value"))
        else:
            errors += legacy_ip_errors(f"{_IPS}[{index}]", address, existing)
    return errors


def _pair_errors(service: JsonObject) -> list[FieldError]:
    addresses, families = strings(service, "clusterIPs"), strings(service, "ipFamilies")
    errors: list[FieldError] = []
    if len(addresses) > 1 and len({is_ipv6(address) for address in addresses}) < 2:
        why = "may specify no more than one IP for each IP family"
        errors.append(invalid(_IPS, list(addresses), why))
    if headless(service):
        return errors
    for index, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if family in FAMILIES and (family == "IPv6") is not is_ipv6(address):
            article = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{_IPS}[{index}]", address, article))
    return errors


def changed_address_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return an error for each change of addresses or families that is not allowed."""
    if "ExternalName" in {text(new, "spec", "type"), text(old, "spec", "type")}:
        return []
    if headless(old) and headless(new):
        return []
    errors = _changed_ip_errors(new, old)
    return errors if headless(old) != headless(new) else errors + _changed_family_errors(new, old)


def _changed_ip_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    before, after, shown = strings(old, "clusterIPs"), strings(new, "clusterIPs"), as_list(new, "clusterIPs")
    if len(before) == len(after):
        return [
            invalid(f"{_IPS}[{index}]", shown, _SET)
            for index, pair in enumerate(zip(before, after, strict=True))
            if pair[0] != pair[1]
        ]
    errors: list[FieldError] = []
    if not after:
        errors.append(invalid(f"{_IPS}[0]", shown, "primary clusterIP can not be unset"))
    if before and after and before[0] != after[0]:
        errors.append(invalid(f"{_IPS}[0]", shown, _SET))
    if len(before) > len(after) == 1 and text(new, "spec", "ipFamilyPolicy") != "SingleStack":
        why = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid("spec.ipFamilyPolicy", find(new, "spec", "ipFamilyPolicy"), why))
    return errors


def _changed_family_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    before, after, field = strings(old, "ipFamilies"), strings(new, "ipFamilies"), "spec.ipFamilies[0]"
    if len(before) == len(after):
        shown = as_list(new, "ipFamilies")
        return [invalid(field, shown, _SET) for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    errors: list[FieldError] = []
    if len(before) > len(after) and not strings(new, "clusterIPs"):
        errors.append(invalid(field, as_list(new, "ipFamilies"), "primary ipFamily can not be unset"))
    if before and after and before[0] != after[0]:
        errors.append(invalid(field, as_list(new, "clusterIPs"), _SET))
    if len(before) > len(after) == 1 and text(new, "spec", "ipFamilyPolicy") != "SingleStack":
        why = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid("spec.ipFamilyPolicy", find(new, "spec", "ipFamilyPolicy"), why))
    return errors
