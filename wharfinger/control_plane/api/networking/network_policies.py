"""The validation of NetworkPolicies (networking.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.objects.addresses import legacy_cidr_errors, parse_cidr
from wharfinger.control_plane.objects.amounts import optional_number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.label_selectors import has_invalid_value, selector_errors
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.objects.names import port_name_problems, port_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
TYPES: Final = ("Ingress", "Egress")
_PEERS: Final = {"ingress": "from", "egress": "to"}


def network_policy_errors(policy: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    """Return the errors of a NetworkPolicy; some invalid values are allowed if ``old`` already had them."""
    any_value = old is not None and has_invalid_value(find(old, "spec", "podSelector"))
    known = [] if old is None else _cidrs(old)
    errors = selector_errors(find(policy, "spec", "podSelector"), "spec.podSelector", any_value=any_value)
    for direction, peers in _PEERS.items():
        for index, rule in enumerate(parts(policy, "spec", direction)):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(parts(rule, "ports")):
                errors += _port_errors(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(parts(rule, peers)):
                errors += _peer_errors(peer, f"{path}.{peers}[{number}]", known, any_value=any_value)
    kinds = texts(policy, "spec", "policyTypes")
    if len(kinds) > len(TYPES):
        return [*errors, invalid("spec.policyTypes", [*kinds], "may not specify more than two policyTypes")]
    return errors + [
        not_supported(f"spec.policyTypes[{index}]", kind, TYPES)
        for index, kind in enumerate(kinds)
        if kind not in TYPES
    ]


def _cidrs(policy: JsonObject) -> list[str]:
    blocks = (
        part(peer, "ipBlock")
        for direction, peers in _PEERS.items()
        for rule in parts(policy, "spec", direction)
        for peer in parts(rule, peers)
    )
    return [cidr for block in blocks if block is not None for cidr in (text(block, "cidr"), *texts(block, "except"))]


def _port_errors(port: JsonObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    protocol, number, end = find(port, "protocol"), find(port, "port"), optional_number(port, "endPort")
    if protocol is not None and protocol not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    if number is None:
        return errors if end is None else [
            *errors, invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")
        ]  # fmt: skip
    if isinstance(number, str):
        if end is not None:
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
        return errors + each(f"{path}.port", number, port_name_problems(number))
    value = number if isinstance(number, int) else 0
    errors += [invalid(f"{path}.port", value, problem) for problem in port_problems(value)]
    if end is not None:
        if end < value:
            errors.append(invalid(f"{path}.endPort", value, "must be greater than or equal to `port`"))
        errors += [invalid(f"{path}.endPort", end, problem) for problem in port_problems(end)]
    return errors


def _peer_errors(peer: JsonObject, path: str, known: list[str], *, any_value: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    selectors = [name for name in ("podSelector", "namespaceSelector") if part(peer, name) is not None]
    for name in selectors:
        errors += selector_errors(peer[name], f"{path}.{name}", any_value=any_value)
    block = part(peer, "ipBlock")
    if block is not None:
        errors += _block_errors(block, f"{path}.ipBlock", known)
    if block is None and not selectors:
        errors.append(required(path, "must specify a peer"))
    elif block is not None and selectors:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _block_errors(block: JsonObject, path: str, known: list[str]) -> list[FieldError]:
    cidr = text(block, "cidr")
    if not cidr:
        return [required(f"{path}.cidr")]
    errors = legacy_cidr_errors(f"{path}.cidr", cidr, known)
    whole = parse_cidr(cidr)
    if whole is None:
        return errors
    for index, item in enumerate(texts(block, "except")):
        field = f"{path}.except[{index}]"
        errors += legacy_cidr_errors(field, item, known)
        less = parse_cidr(item)
        if less is not None and (less[0] not in whole[1] or whole[1].prefixlen >= less[1].prefixlen):
            errors.append(invalid(field, item, "must be a strict subset of `cidr`"))
    return errors


NETWORK_POLICY_RULES: Final[dict[str, Rules]] = {
    "NetworkPolicy.networking.k8s.io": Rules(create=network_policy_errors, update=network_policy_errors),
}
