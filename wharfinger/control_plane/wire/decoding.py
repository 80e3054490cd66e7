"""The decoding of bodies of built-in kinds into typed objects, as Go's JSON decoder fills structs.

Fields that no struct declares are omitted and recorded. A null counts as an absent field. Times, quantities and bytes get their
canonical form. A value whose type is not the type of its field is refused with Go's message, which names the struct, the path
and the Go type. Only the first wrong type is reported. An error in a type with its own UnmarshalJSON (a time, a quantity) ends
the decoding immediately.

Sources: sigs.k8s.io/json (case-sensitive, integers kept, strict errors), and UnmarshalJSON of the types in apimachinery.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Final, TypeAlias, TypeGuard

import msgspec

from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation, Scalar, has_texts_only, schema_types
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.control_plane.wire.go_json import Repeated, Spelled
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.go_texts import ZERO_TIME, GoFormatError, read_base64, read_quantity, read_time

MAX_STRICT_ERRORS: Final = 100
INT32: Final = range(-(2**31), 2**31)
_OCTETS: Final = range(256)
_TYPE_FIELDS: Final = ("kind", "apiVersion")
INT64: Final = range(-(2**63), 2**63)

_Key: TypeAlias = tuple[str]
"""A path step for a member of a map. Go omits such steps from field paths."""
_Step: TypeAlias = "str | int | _Key"


class DecodingError(FormatError):
    """A value does not have the type of its field, or is not a valid value of that type; the message is Go's."""


class Decoded(msgspec.Struct, frozen=True):
    """An object in the form of its kind, and what a strict decoder reports about it (``unknown field "spec.foo"``), in order."""

    obj: JsonObject
    strict: tuple[str, ...]
    respelled: bool = False
    """True if the object has a quantity that was sent as a number and lost its spelling, such as ``1e3``."""


def decoded(value: JsonObject, lists: ListTypes) -> Decoded:
    """Return the object as the Go type of its kind holds it; ``lists`` describes that type. Raises DecodingError."""
    decoder = _Decoder()
    try:
        obj = decoder.struct(value, lists)
    except GoFormatError as error:
        raise DecodingError(str(error)) from error
    if decoder.saved:
        raise DecodingError(decoder.saved)
    return Decoded(obj, tuple(decoder.strict), decoder.respelled)


def read_schema(value: JsonValue, types: ListTypes) -> JsonValue:
    """Return the decoded schema of a CustomResourceDefinition, or the boolean or list that ``types`` allows in its place.

    Raises GoFormatError.
    """
    return _Decoder().schema(value, types)


def go_type_of(value: JsonValue) -> str:
    """Return the name that encoding/json gives the type of a value."""
    if isinstance(value, bool):
        return "bool"
    return {dict: "object", Repeated: "object", list: "array", str: "string", type(None): "null"}.get(
        type(value), "number"
    )


class _Decoder:
    """The state of decoding one body: the current path, and the errors so far."""

    def __init__(self, holders: Sequence[tuple[ListTypes, str]] = (), inside: int = 0) -> None:
        self.saved = ""
        self.strict: list[str] = []
        self.respelled = False
        self._path: list[_Step] = []
        self._holders: list[tuple[ListTypes, str]] = [*holders]
        """The enclosing structs, each with the name of the field that is being decoded."""
        self._inside = inside
        """The number of structs around the outermost of the values that are being decoded whose Go types have their own
        UnmarshalJSON; 0 if no such value is being decoded.
        """

    def struct(self, value: JsonObject, lists: ListTypes) -> JsonObject:
        """Return an object in the form of a struct, with each declared member in the form of its type."""
        found: JsonObject = {}
        if not isinstance(value, Repeated):
            members, plain = list(value.items()), lists.plain_fields
        else:
            members, plain = value.members, {}
        fields = lists.fields
        seen: set[str] = set()
        for name, inner in members:
            if type(inner) is str and name in plain:  # the most frequent type
                found[name] = inner
                continue
            types = fields.get(name)
            if types is None:
                self._record_strict_error("unknown", name)
                continue
            if isinstance(value, Repeated):
                if name in seen:
                    self._record_strict_error("duplicate", name)
                seen.add(name)
            if inner is None:
                if types.relation not in {Relation.SCALAR, Relation.QUANTITY} or name in lists.pointers:
                    found.pop(name, None)
                continue
            self._path.append(name)
            self._holders.append((lists, name))
            read = self.value(inner, types)
            self._holders.pop()
            self._path.pop()
            before = found.get(name)
            found[name] = {**before, **read} if isinstance(before, dict) and isinstance(read, dict) else read
            if read is None:
                del found[name]
        return found

    def value(self, value: JsonValue, types: ListTypes) -> JsonValue:
        """Convert a value other than null to the form that its type requires. Return None if the value cannot be converted."""
        relation = types.relation
        if relation is Relation.SCALAR or relation is Relation.QUANTITY:
            return self._scalar(value, types)
        if relation is Relation.UNKNOWN:
            if types.scalar is not Scalar.ANY:
                return _Decoder(self._holders, self._inside or len(self._holders)).schema(value, types)
            return _plain(value)
        if types.closed:
            return self.struct(value, types) if isinstance(value, dict) else self._save_wrong_type(value, types)
        if relation is Relation.MAP or relation is Relation.ATOMIC_MAP:
            return self._map(value, types) if isinstance(value, dict) else self._save_wrong_type(value, types)
        return self._list(value, types) if isinstance(value, list) else self._save_wrong_type(value, types)

    def schema(self, value: JsonValue, types: ListTypes) -> JsonValue:
        """Return a schema, or the boolean or list that may replace it.

        The UnmarshalJSON of a schema ignores unknown fields, and ends at the first error. Raises GoFormatError.
        """
        read: JsonValue = None
        if isinstance(value, dict):
            read = self.struct(value, schema_types())
        elif types.scalar is Scalar.SCHEMA_OR_BOOL:
            if not isinstance(value, bool):
                raise GoFormatError("boolean or JSON schema expected")
            read = value
        elif isinstance(value, list) and value:
            name = "allOf" if types.scalar is Scalar.SCHEMA_OR_SCHEMAS else "required"
            read = self._list(value, schema_types().field(name))
        if self.saved:
            raise GoFormatError(self.saved)
        return read

    def _map(self, value: JsonObject, types: ListTypes) -> JsonObject:
        element = types.item
        found: JsonObject = {}
        if element.scalar is Scalar.STRING and type(value) is dict and has_texts_only(value):
            return dict(value)
        for name, inner in value.members if isinstance(value, Repeated) else value.items():
            if name in found:
                self._record_strict_error("duplicate", name)
            if type(inner) is str and element.scalar is Scalar.STRING:
                found[name] = inner
                continue
            self._path.append((name,))
            found[name] = _zero(element) if inner is None else self.value(inner, element)
            self._path.pop()
        return found

    def _list(self, value: list[JsonValue], types: ListTypes) -> list[JsonValue]:
        element = types.item
        found: list[JsonValue] = []
        for index, inner in enumerate(value):
            self._path.append(index)
            found.append(_zero(element) if inner is None else self.value(inner, element))
            self._path.pop()
        return found

    def _scalar(self, value: JsonValue, types: ListTypes) -> JsonValue:
        match types.scalar:
            case Scalar.STRING:
                return value if isinstance(value, str) else self._save_wrong_type(value, types)
            case Scalar.BOOL:
                return value if isinstance(value, bool) else self._save_wrong_type(value, types)
            case Scalar.INT32:
                return self._integer(value, types, INT32)
            case Scalar.INT64:
                return self._integer(value, types, INT64)
            case Scalar.FLOAT:
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                return _plain(value) if is_number else self._save_wrong_type(value, types)
            case Scalar.INT_OR_STRING:
                return value if isinstance(value, str) else self._own_integer(value)
            case Scalar.TIME | Scalar.MICRO_TIME:
                if not isinstance(value, str):
                    raise GoFormatError(self._complaint(go_type_of(value), "string"))
                time = read_time(value, micro=types.scalar is Scalar.MICRO_TIME)
                return None if time == ZERO_TIME else time
            case Scalar.QUANTITY:
                self.respelled = self.respelled or type(value) is float
                return read_quantity(_spelled(value))
            case Scalar.BYTES:
                return self._bytes(value, types)
            case _:
                return _plain(value)

    def _integer(self, value: JsonValue, types: ListTypes, limits: range) -> JsonValue:
        if isinstance(value, int) and not isinstance(value, bool):
            if value in limits:
                return value
        elif not isinstance(value, float):
            return self._save_wrong_type(value, types)
        return self._save(self._complaint(f"number {_spelled(value)}", types.go_type))

    def _own_integer(self, value: JsonValue) -> JsonValue:
        """Return the number in an IntOrString. Its Go type has its own UnmarshalJSON, whose error ends the decoding."""
        if isinstance(value, int) and not isinstance(value, bool) and value in INT32:
            return value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        said = f"number {_spelled(value)}" if is_number else go_type_of(value)
        raise GoFormatError(self._complaint(said, "int32"))

    def _bytes(self, value: JsonValue, types: ListTypes) -> JsonValue:
        if isinstance(value, list):
            octets = [item or 0 for item in value if item is None or _is_octet(item)]
            wrong = next((item for item in value if item is not None and not _is_octet(item)), None)
            if wrong is None:
                return b64encode(bytes(octets)).decode()
            is_number = isinstance(wrong, int | float) and not isinstance(wrong, bool)
            return self._save(self._complaint(f"number {_spelled(wrong)}" if is_number else go_type_of(wrong), "uint8"))
        if not isinstance(value, str):
            return self._save_wrong_type(value, types)
        try:
            return read_base64(value)
        except GoFormatError as error:
            return self._save(str(error))

    def _save_wrong_type(self, value: JsonValue, types: ListTypes) -> JsonValue:
        """Record that a value has another type than ``types``, and return None."""
        return self._save(self._complaint(go_type_of(value), types.go_type))

    def _save(self, complaint: str) -> JsonValue:
        self.saved = self.saved or complaint
        return None

    def _complaint(self, value: str, go_type: str) -> str:
        if not self._holders:
            return f"json: cannot unmarshal {value} into Go value of type {go_type}"
        steps: list[str] = []
        for depth, (holder, name) in enumerate(self._holders):
            steps += [holder.embedded[name]] if name in holder.embedded else []
            if depth and name in _TYPE_FIELDS and "metadata" in holder.fields:
                steps.append("TypeMeta")
            steps.append(name)
        struct = self._holders[self._inside - 1][0].go_type.rpartition(".")[2]
        return f"json: cannot unmarshal {value} into Go struct field {struct}.{'.'.join(steps)} of type {go_type}"

    def _record_strict_error(self, what: str, name: str) -> None:
        """Record that a field is unknown or occurs twice. ``what`` says which of the two. The same error is recorded only
        once.
        """
        text = f"{what} field {quoted(_path_text([*self._path, name]))}"
        if len(self.strict) < MAX_STRICT_ERRORS and text not in self.strict:
            self.strict.append(text)


def _path_text(path: list[_Step]) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if isinstance(step, str) else step[0]
            text += f".{name}" if text else name
    return text


def _zero(types: ListTypes) -> JsonValue:
    """Return the value to which a null element of a map or list is decoded."""
    if types.closed:
        return {}
    match types.scalar:
        case Scalar.STRING | Scalar.BYTES:
            return ""
        case Scalar.BOOL:
            return False
        case Scalar.INT32 | Scalar.INT64 | Scalar.FLOAT | Scalar.INT_OR_STRING:
            return 0
        case Scalar.QUANTITY:
            return "0"
        case _:
            return None


def _spelled(value: JsonValue) -> str:
    """Return the original spelling of a number, or a string itself, for quantities and messages; "" for other values."""
    if isinstance(value, Spelled):
        return value.text
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _is_octet(value: JsonValue) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value in _OCTETS


def _plain(value: JsonValue) -> JsonValue:
    """Return a copy of a value in which each number that has its original spelling (see :meth:`Body.closely`) is a
    plain float.
    """
    if isinstance(value, Spelled):
        return float(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
