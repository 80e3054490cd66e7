"""The expressions that select devices: their variables and their cost limit (``selectors[].cel`` of resource.k8s.io).

An attribute may have any value, so its type is ``any``: nothing is known about it before the expression is evaluated.
"""

from functools import cache
from typing import Final

from wharfinger.control_plane.cel.checking.checker import Checked
from wharfinger.control_plane.cel.compiling import judged
from wharfinger.control_plane.cel.costs.estimate import estimate
from wharfinger.control_plane.cel.syntax.macros import BINDINGS
from wharfinger.control_plane.cel.values.schema_types import Declared
from wharfinger.control_plane.cel.values.types import BOOL, STRING, Type, mapped, read_type

COST_LIMIT: Final = 1_000_000
_MAX_PROPERTIES: Final = 32
_DOMAIN_CHARS, _ID_CHARS, _VALUE_CHARS = 63, 32, 64
_ANY: Final = Type("dyn", "any")
_DEVICE: Final = Type("struct", "kubernetes.DRADevice")


@cache
def _declared() -> Declared:
    """Return the type of the variable ``device``, with the maximum sizes of its parts."""
    quantity = Declared(read_type("kubernetes.Quantity"), 0)
    return Declared(
        _DEVICE,
        0,
        fields={
            "driver": Declared(STRING, 2, _DOMAIN_CHARS),
            "attributes": _map_of(Declared(_ANY, 1, _VALUE_CHARS)),
            "capacity": _map_of(quantity),
            "allowMultipleAllocations": Declared(BOOL, 1, 1),
        },
    )


def _map_of(value: Declared) -> Declared:
    """Return the type of a map whose keys are domains, and whose values are maps from identifiers to ``value``."""
    inner = Declared(mapped(STRING, value.type), 2, _MAX_PROPERTIES, element=value, key=Declared(STRING, 2, _ID_CHARS))
    return Declared(
        mapped(STRING, inner.type), 2, _MAX_PROPERTIES, element=inner, key=Declared(STRING, 2, _DOMAIN_CHARS)
    )


def selector_checked(expression: str) -> Checked | str:
    """Return the compiled expression of a selector, or the reason why it is invalid."""
    fields = {name: declared.type for name, declared in _declared().fields.items()}
    checked = judged(expression, {"device": _DEVICE}, {_DEVICE.name: fields}, more=BINDINGS)
    if isinstance(checked, str):
        return f"compilation failed: {checked}"
    if checked.result in (BOOL, _ANY):
        return checked
    return f"must evaluate to bool or the unknown type, not {_written(checked.result)}"


def selector_cost(checked: Checked) -> int:
    """Return the maximum cost of a selector's expression."""
    return estimate(checked, _declared())


def _written(kind: Type) -> str:
    if kind == _ANY:
        return "google.protobuf.Any"
    return f"{kind.name}({', '.join(map(_written, kind.params))})" if kind.params else str(kind)
