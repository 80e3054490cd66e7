"""The hashes in the names of objects that workload controllers create, such as ``5d4f8c7b9`` in the name of the ReplicaSet
``web-5d4f8c7b9``.

A pod template is printed as Go prints its struct (types included, fields in the order of ``template_types.json``, zero
values written out), and the text is hashed with FNV-1a into 32 bits (ReplicaSets, DaemonSets). StatefulSets hash the JSON of
their revision with FNV-1 instead. The decimal digits of the hash are then replaced by characters that cannot spell words.

Templates must have the form that the control plane stores: with defaults, and with quantities in their canonical form. Empty
lists and maps count as absent, as they do after a round trip through protobuf.
"""

import json
from functools import cache
from pathlib import Path
from typing import Final

from wharfinger.control_plane.kubernetes_version import table
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.kube.names import GENERATED

_TYPES: Final = table(Path(__file__).with_name("template_types.json"))
_PRIME: Final = 0x01000193
_BASIS: Final = 0x811C9DC5
_MASK: Final = 0xFFFFFFFF
_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_ZERO_TIME: Final = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"
_NUMBERS: Final = frozenset({"int", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"})

Fields = tuple[tuple[str, str, str], ...]


def safe_encoded(number: int) -> str:
    """Encode the digits of a number as characters that may occur in generated names."""
    return "".join(GENERATED[ord(digit) % len(GENERATED)] for digit in str(number))


def template_hash(template: JsonValue, collisions: int | None = None) -> str:
    """Return the ``pod-template-hash`` of a pod template; ``collisions`` is ``status.collisionCount`` or None."""
    text = "(v1.PodTemplateSpec)" + _struct("v1.PodTemplateSpec", template if isinstance(template, dict) else {})
    data = text.encode()
    if collisions is not None:
        data += (collisions & _MASK).to_bytes(4, "little") + bytes(4)
    number = _BASIS
    for byte in data:
        number = ((number ^ byte) * _PRIME) & _MASK
    return safe_encoded(number)


def revision_hash(data: JsonValue, collisions: int | None = None) -> str:
    """Return the hash of a ControllerRevision's data."""
    encoded = json.dumps(data, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    for char in "&<>\u2028\u2029":
        encoded = encoded.replace(char, f"\\u{ord(char):04x}")
    number = _BASIS
    for byte in encoded.encode() + (b"" if collisions is None else str(collisions).encode()):
        number = ((number * _PRIME) & _MASK) ^ byte
    return safe_encoded(number)


@cache
def _types() -> tuple[dict[str, Fields], dict[str, str]]:
    table = json.loads(_TYPES.read_bytes())
    return {name: tuple(map(tuple, fields)) for name, fields in table["structs"].items()}, table["named"]


def _struct(name: str, obj: JsonObject) -> str:
    parts = []
    for go_name, json_name, kind in _types()[0][name]:
        value = obj.get(json_name) if json_name else obj
        parts.append(f"{go_name}:{_typed(kind, value)}")
    return "{" + " ".join(parts) + "}"


def _typed(kind: str, value: JsonValue) -> str:
    """Print a type in parentheses, and then a value of this type; a pointer is printed as ``<nil>`` or as its target."""
    if kind.startswith("*"):
        return f"({kind})<nil>" if value is None else f"({kind}){_bare(kind[1:], value)}"
    return f"({kind}){_bare(kind, value)}"


def _bare(kind: str, value: JsonValue) -> str:
    if kind == "resource.Quantity":
        return _quantity(value if isinstance(value, str) else str(value or "0"))
    if kind == "intstr.IntOrString":
        return _int_or_string(value)
    if kind == "v1.Time":
        return _ZERO_TIME
    if kind in _types()[0]:
        return _struct(kind, value if isinstance(value, dict) else {})
    kind = _types()[1].get(kind, kind)
    if kind.startswith("[]"):
        if not isinstance(value, list) or not value:
            return "<nil>"
        return "[" + " ".join(_bare(kind[2:], item) for item in value) + "]"
    if kind.startswith("map["):
        if not isinstance(value, dict) or not value:
            return "<nil>"
        element = kind.partition("]")[2]
        names = sorted(value, key=lambda name: name.encode("utf-8", "surrogatepass"))
        return "map[" + " ".join(f"{name}:{_bare(element, value[name])}" for name in names) + "]"
    if kind == "bool":
        return "true" if value is True else "false"
    if kind in _NUMBERS:
        return str(int(value)) if isinstance(value, int | float) else "0"
    return value if isinstance(value, str) else ""


def _int_or_string(value: JsonValue) -> str:
    text = value if isinstance(value, str) else ""
    number = value if isinstance(value, int) else 0
    return f"{{Type:(intstr.Type){int(isinstance(value, str))} IntVal:(int32){number} StrVal:(string){text}}}"


def _quantity(text: str) -> str:
    """Print a canonical quantity in the form that Go keeps after parsing it."""
    digits = text.lstrip("+-").rstrip("numkMGTPEeiK")
    suffix = text.lstrip("+-")[len(digits) :]
    if "e" in digits or "E" in digits or not digits.isdecimal() or suffix not in _SUFFIXES | _BINARY:
        return _amount(0, 0, "DecimalExponent", text)
    sign = -1 if text.startswith("-") else 1
    if text == "0":
        return _amount(0, 0, "DecimalSI", "0")
    if suffix in _BINARY:
        exponent = _BINARY[suffix]
        value = sign * (int(digits) << exponent)
        if 15 - len(digits) - int(exponent * 3 / 10) - 1 < 0:
            return _big(value, "BinarySI")
        return _amount(value, 0, "BinarySI", text if int(digits) & 7 else "")
    scale = _SUFFIXES[suffix]
    if len(digits) > 18:
        return _big(sign * int(digits), "DecimalSI", -scale)
    kept = not digits.endswith("000") and not digits.startswith("0")
    return _amount(sign * int(digits), scale, "DecimalSI", text if kept else "")


def _amount(value: int, scale: int, form: str, text: str) -> str:
    number = f"(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}}"
    return f"{{i:{number} d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){text} Format:(resource.Format){form}}}"


def _big(value: int, form: str, scale: int = 0) -> str:
    words = []
    rest = abs(value)
    while rest:
        rest, word = rest >> 64, rest & 0xFFFFFFFFFFFFFFFF
        words.append(str(word))
    unscaled = f"(big.Int){{neg:(bool){'true' if value < 0 else 'false'} abs:(big.nat)[{' '.join(words)}]}}"
    dec = f"(*inf.Dec){{unscaled:{unscaled} scale:(inf.Scale){scale}}}"
    number = "(resource.int64Amount){value:(int64)0 scale:(resource.Scale)0}"
    return f"{{i:{number} d:(resource.infDecAmount){{Dec:{dec}}} s:(string) Format:(resource.Format){form}}}"


def revision_data(template: JsonValue) -> JsonObject:
    """Return the data of a ControllerRevision: a strategic merge patch that replaces the pod template."""
    return {"spec": {"template": find_object(template) | {"$patch": "replace"}}}
