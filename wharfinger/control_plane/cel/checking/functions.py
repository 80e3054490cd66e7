"""All functions and operators that an expression may call, with the types of their overloads, in cel-go's order.

In the table (``function_table``), a line with the name of a function precedes its overloads. Each overload has one line: its
id, the types of its parameters, and the type of its result. A ``.`` before the parenthesis means that the function is called
on its first parameter (``text.size()``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from wharfinger.control_plane.cel.checking.function_table import CIDR, FORMAT, IP, QUANTITY, SEMVER, TABLE, URL
from wharfinger.control_plane.cel.values.types import Type, read_type

_NUMBERS: Final = ("int64", "uint64", "double")
_TYPE_NAMES: Final = {"int64": "int", "uint64": "uint", "double": "double"}
_ORDERED: Final = ("bool", "int64", "uint64", "double", "string", "bytes", "timestamp", "duration")


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function; ``member`` is true if the function is called on its first parameter."""

    id: str
    parameters: tuple[Type, ...]
    result: Type
    member: bool

    @property
    def variables(self) -> frozenset[str]:
        """The names of the overload's type parameters."""
        return frozenset(name for kind in (*self.parameters, self.result) for name in _names(kind))


def _names(kind: Type) -> list[str]:
    own = [kind.name] if kind.kind == "param" else []
    return own + [name for inner in kind.params for name in _names(inner)]


_FORMATS: Final = (
    *(
        "dns1123Label",
        "dns1123Subdomain",
        "dns1035Label",
        "qualifiedName",
        "dns1123LabelPrefix",
        "dns1123SubdomainPrefix",
    ),
    *("dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime"),
)
_TIMES: Final = (
    ("getFullYear", "year"), ("getMonth", "month"), ("getDayOfYear", "day_of_year"), ("getDate", "day_of_month_1_based"),
    ("getDayOfMonth", "day_of_month"), ("getDayOfWeek", "day_of_week"), ("getHours", "hours"), ("getMinutes", "minutes"),
    ("getSeconds", "seconds"), ("getMilliseconds", "milliseconds"),
)  # fmt: skip
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = ("int", "uint", "double", "duration")


def _comparisons() -> list[str]:
    lines = []
    for operator, name in (("<", "less"), ("<=", "less_equals"), (">=", "greater_equals"), (">", "greater")):
        lines.append(f"_{operator}_")
        for kind in _ORDERED:
            own = _TYPE_NAMES.get(kind, kind)
            lines.append(f"  {name}_{kind}({own}, {own}) bool")
            if kind in _NUMBERS:
                others = [other for other in _NUMBERS if other != kind]
                lines += [f"  {name}_{kind}_{other}({own}, {_TYPE_NAMES[other]}) bool" for other in others]
    return lines


def _generated() -> list[str]:
    lines = _comparisons()
    for name in _FORMATS:
        lines += [f"format.{name}", f"  format.{name}() {FORMAT}"]
    for function, part in _TIMES:
        lines += [
            function,
            f"  timestamp_to_{part}.(timestamp) int",
            f"  timestamp_to_{part}_with_tz.(timestamp, string) int",
        ]
        if part in {"hours", "minutes", "seconds", "milliseconds"}:
            lines.append(f"  duration_to_{part}.(duration) int")
    for function, text in (("isSorted", "is_sorted_bool"), ("max", "max"), ("min", "min")):
        lines.append(function)
        for kind in _COMPARABLE:
            result = "bool" if function == "isSorted" else kind
            lines.append(f"  list_{kind}_{text}{'' if function == 'isSorted' else '_' + kind}.(list({kind})) {result}")
    lines.append("sum")
    lines += [f"  list_{kind}_sum_{kind}.(list({kind})) {kind}" for kind in _SUMMABLE]
    lines.append("sort")
    lines += [f"  list_{kind}_sort.(list({kind})) list({kind})" for kind in _COMPARABLE]
    lines.append("@sortByAssociatedKeys")
    lines += [f"  list_{kind}_sortByAssociatedKeys.(list(T), list({kind})) list(T)" for kind in _COMPARABLE]
    return lines


@cache
def functions() -> Mapping[str, tuple[Overload, ...]]:
    """Return the overloads of each function."""
    found: dict[str, list[Overload]] = {}
    current: list[Overload] = []
    for line in (*TABLE.strip().splitlines(), *_generated()):
        if not line.startswith(" "):
            current = found.setdefault(line, [])
            continue
        overload_id, _, rest = line.strip().partition("(")
        parameters, _, result = rest.rpartition(") ")
        kind = read_type(f"f.x({parameters})") if parameters else None
        member = overload_id.endswith(".")
        given = () if kind is None else kind.params
        current.append(Overload(overload_id.rstrip("."), given, read_type(result), member))
    return {name: tuple(overloads) for name, overloads in found.items()}


RESULTS_OF_TYPES: Final = {
    "bool": "bool", "bytes": "bytes", "double": "double", "int": "int", "list": "list(A)", "map": "map(A, B)",
    "null_type": "null", "string": "string", "type": "type", "uint": "uint", "optional_type": "optional_type",
    "duration": "duration", "timestamp": "timestamp",
    "google.protobuf.Duration": "duration", "google.protobuf.Timestamp": "timestamp",
    IP: IP, CIDR: CIDR, URL: URL, QUANTITY: QUANTITY, SEMVER: SEMVER, FORMAT: FORMAT,
}  # fmt: skip
"""The names of types that an expression may use, with the types that they denote."""
