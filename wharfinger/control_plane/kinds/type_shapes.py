"""The merge rules of the fields of a kind: which lists are sets, which lists are keyed, and which values change only as a
whole.

Three features need these rules: server-side apply and managed fields (KEP-555: ``x-kubernetes-list-type``,
``-list-map-keys``, ``-map-type``), and strategic merge patches (``x-kubernetes-patch-merge-key``,
``-patch-strategy``). A :class:`ListTypes` holds the rules for one place in a document; navigate it with
:meth:`ListTypes.field` and :attr:`ListTypes.element`, or :meth:`ListTypes.at`.

The rules of built-in kinds come from ``list_types.json`` beside this file, which
``tools/kubernetes/generate_list_types.py`` makes. The file is read at first use, kept as raw JSON, and converted to objects on
access. The rules of custom kinds come from the schema of their definition. An undeclared field is :attr:`Relation.UNKNOWN`: its
rules follow from its value (objects merge by member, lists change as a whole).

``list_types.json`` also contains the form in which Go prints an empty struct (:attr:`ListTypes.zero`). The API server compares a
created object with such an empty struct, so a member that is always printed never counts as added. Finally, the file contains the
Go names of the types, and the types of scalars (:attr:`ListTypes.go_type`, :attr:`ListTypes.scalar`). The decoding of request
bodies needs these, also for its error messages (:mod:`~wharfinger.control_plane.wire.decoding`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from wharfinger.control_plane.kubernetes_version import table
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    decode_json,
    find,
    find_list,
    find_object,
    find_str,
)

DATA: Final = table(Path(__file__).with_name("list_types.json"))
MAX_DATA_BYTES: Final = 400_000


class Relation(StrEnum):
    """The shape of a value, which determines how its members or items are merged."""

    SCALAR = "scalar"
    QUANTITY = "quantity"
    """A scalar that is a resource quantity (``500m``, ``1Gi``)."""
    ATOMIC_LIST = "atomic list"
    SET = "set"
    """A list of scalars, each at most once."""
    KEYED = "keyed list"
    """A list of objects that are identified by :attr:`ListTypes.keys`."""
    ATOMIC_MAP = "atomic map"
    MAP = "map"
    """A map with arbitrary names; :attr:`ListTypes.element` has the rules of its values."""
    STRUCT = "struct"
    """An object with declared names (:attr:`ListTypes.fields`); if :attr:`ListTypes.element` is not None, other names are allowed
    too."""
    UNKNOWN = "unknown"


class Scalar(StrEnum):
    """The scalar types of built-in kinds; the value is the letter that stands for the type in the data file."""

    ANY = ""
    """The type is not known, and the value may be any JSON."""
    STRING = "s"
    BOOL = "b"
    INT32 = "i"
    INT64 = "l"
    FLOAT = "f"
    BYTES = "y"
    """A string in base64."""
    QUANTITY = "q"
    INT_OR_STRING = "x"
    TIME = "t"
    """A time in RFC 3339, in whole seconds."""
    MICRO_TIME = "m"
    SCHEMA_OR_SCHEMAS = "o"
    SCHEMA_OR_BOOL = "c"
    SCHEMA_OR_STRINGS = "d"


_GO_TYPES: Final = {
    Scalar.ANY: "",
    Scalar.STRING: "string",
    Scalar.BOOL: "bool",
    Scalar.INT32: "int32",
    Scalar.INT64: "int64",
    Scalar.FLOAT: "float64",
    Scalar.BYTES: "[]uint8",
    Scalar.QUANTITY: "resource.Quantity",
    Scalar.INT_OR_STRING: "intstr.IntOrString",
    Scalar.TIME: "v1.Time",
    Scalar.MICRO_TIME: "v1.MicroTime",
}
_SCHEMAS: Final = frozenset({Scalar.SCHEMA_OR_SCHEMAS, Scalar.SCHEMA_OR_BOOL, Scalar.SCHEMA_OR_STRINGS})

WHOLE: Final = frozenset({Relation.SCALAR, Relation.QUANTITY, Relation.ATOMIC_LIST, Relation.ATOMIC_MAP})
"""The relations of values that are owned and merged as a whole. The members or items of such a value have no owners of their
own.
"""


_TEXTS: Final = {str}


def _no_fields() -> "Mapping[str, ListTypes]":
    return MappingProxyType({})


@dataclass(frozen=True, eq=False)
class ListTypes:
    """The merge rules of the value at one place of a document, and of its members or items. Immutable; compared by identity."""

    relation: Relation
    keys: tuple[str, ...] = ()
    """The ``x-kubernetes-list-map-keys`` of a keyed list."""
    key_defaults: Mapping[str, JsonValue] = field(default_factory=dict)
    """The default values of keys in ``keys``. They identify an item that leaves out such a key; for example, ``protocol`` is
    TCP.
    """
    merge_key: str = ""
    """The key by which strategic merge patches identify items; "" for lists of scalars and for lists that are replaced."""
    strategies: frozenset[str] = frozenset()
    """The ``x-kubernetes-patch-strategy``: any of ``merge``, ``replace`` and ``retainKeys``."""
    element: "ListTypes | None" = None
    """The rules of a list's items or a map's values."""
    zero: JsonObject = field(default_factory=dict)
    """The form in which Go prints an empty struct of this type; {} if the type is not a struct. Callers must not change this
    dict.
    """
    pointers: frozenset[str] = frozenset()
    """The members of a struct that are printed even when zero (scalars that Go holds by pointer)."""
    scalar: Scalar = Scalar.ANY
    """The type of a scalar, if the data has it. If ``relation`` is UNKNOWN, it shows whether the value is a schema of a
    CustomResourceDefinition.
    """
    go_type: str = ""
    """Go's name of the type (``v1.PodSpec``, ``[]string``), if the data has it."""
    embedded: Mapping[str, str] = field(default_factory=dict)
    """The fields that a struct has from an embedded struct, each with the name of the embedded struct: ``emptyDir`` →
    ``VolumeSource``.
    """
    closed: bool = False
    """True if only :attr:`fields` may be members of the struct, even if :attr:`fields` is empty."""
    load_fields: "Callable[[], Mapping[str, ListTypes]]" = field(default=_no_fields, repr=False)

    @cached_property
    def fields(self) -> "Mapping[str, ListTypes]":
        """The declared members of a struct, in the order of the Go type."""
        return self.load_fields()

    @cached_property
    def plain_fields(self) -> Mapping[str, bool]:
        """The members of a struct that are plain strings; the value is True if the member is printed even when empty."""
        return {
            name: name in self.zero or name in self.pointers
            for name, types in self.fields.items()
            if types.relation is Relation.SCALAR and types.scalar is Scalar.STRING
        }

    @property
    def is_whole(self) -> bool:
        """Return whether the value can only be replaced as a whole."""
        return self.relation in WHOLE

    def declares(self, name: str) -> bool:
        """Return whether the value may have a member of that name."""
        return self.element is not None or name in self.fields or not (self.fields or self.closed)

    def field(self, name: str) -> "ListTypes":
        """Return the rules of the member of that name; UNKNOWN if the member is undeclared."""
        found = self.fields.get(name)
        if found is not None:
            return found
        return self.element if self.element is not None and self.relation is not Relation.KEYED else UNKNOWN

    @property
    def item(self) -> "ListTypes":
        """Return the rules of a list's items; UNKNOWN if the items are undeclared."""
        return self.element if self.element is not None else UNKNOWN

    def at(self, *path: str) -> "ListTypes":
        """Return the rules at a path of member names, such as ``at("spec", "containers", "env")``.

        For a list on the path, the next name is a member of the list's items.
        """
        here = self
        for name in path:
            if here.relation in {Relation.KEYED, Relation.SET, Relation.ATOMIC_LIST}:
                here = here.item
            here = here.field(name)
        return here

    def of(self, value: JsonValue) -> "ListTypes":
        """Return the rules for a value. These are the present rules, unless they are UNKNOWN: then they follow from the form of
        the value (a map, a list or a scalar).
        """
        if self.relation is not Relation.UNKNOWN:
            return self
        if isinstance(value, dict):
            return _RAW_MAP if self is RAW else _UNKNOWN_MAP
        return _UNKNOWN_LIST if isinstance(value, list) else SCALAR


SCALAR: Final = ListTypes(Relation.SCALAR)
UNKNOWN: Final = ListTypes(Relation.UNKNOWN)
RAW: Final = ListTypes(Relation.UNKNOWN)
"""The rules of a field of a built-in kind that contains any JSON (``data`` of a ControllerRevision). The field is only replaced
as a whole.
"""
_RAW_MAP: Final = ListTypes(Relation.ATOMIC_MAP, element=UNKNOWN)
_UNKNOWN_MAP: Final = ListTypes(Relation.MAP, element=UNKNOWN)
_UNKNOWN_LIST: Final = ListTypes(Relation.ATOMIC_LIST, element=UNKNOWN)


@cache
def builtin_list_types(group: str, version: str, kind: str) -> ListTypes:
    """Return the rules for merging lists and maps of a built-in kind; ``group`` is "" for the core group. For a kind that the
    data file does not describe, return only the rules of its metadata.
    """
    name = find_str(_data(), "kinds", f"{group}/{version}/{kind}" if group else f"{version}/{kind}")
    return _struct(name) if name else _custom_root({})


@lru_cache(maxsize=1024)
def is_builtin(group: str, version: str, kind: str) -> bool:
    """Return whether the data file describes the kind."""
    return find(_data(), "kinds", f"{group}/{version}/{kind}" if group else f"{version}/{kind}") is not None


def has_version(group: str, version: str) -> bool:
    """Return whether the data file describes any kind of a version of a group."""
    prefix = f"{group}/{version}/" if group else f"{version}/"
    return any(name.startswith(prefix) for name in find_object(_data(), "kinds"))


def crd_list_types(schema: JsonObject) -> ListTypes:
    """Return the merge rules of one version of a custom kind from its ``openAPIV3Schema``. If the schema is {}, all fields are
    undeclared.
    """
    return _custom_root(schema)


def has_texts_only(value: JsonObject) -> bool:
    """Return whether the object has members, and all of them are strings."""
    return set(map(type, value.values())) == _TEXTS


def metadata_list_types() -> ListTypes:
    """Return the rules for merging the lists and maps in ``metadata``, which all kinds share."""
    return _struct("meta.v1.ObjectMeta")


def schema_types() -> ListTypes:
    """Return the rules for merging the lists and maps in a schema of a CustomResourceDefinition."""
    return _struct("apiextensions.v1.JSONSchemaProps")


def delete_options_types() -> ListTypes:
    """Return the rules for merging the lists and maps of ``DeleteOptions``, the options of a DELETE request."""
    return _struct("meta.v1.DeleteOptions")


def _custom_root(schema: JsonObject) -> ListTypes:
    def fields() -> Mapping[str, ListTypes]:
        declared = {
            name: _of_schema(as_object(value, name)) for name, value in find_object(schema, "properties").items()
        }
        return declared | {"apiVersion": SCALAR, "kind": SCALAR, "metadata": metadata_list_types()}

    open_end = not schema or find(schema, "x-kubernetes-preserve-unknown-fields") is True
    return ListTypes(Relation.STRUCT, element=UNKNOWN if open_end else None, load_fields=fields)


def _of_schema(schema: JsonObject) -> ListTypes:
    """Return the rules of one node of a structural schema (apiextensions.k8s.io/v1)."""
    kind = find_str(schema, "type")
    if kind == "array":
        return _list_of_schema(schema)
    if find(schema, "x-kubernetes-embedded-resource") is True:
        return _custom_root(schema)
    if kind != "object":
        untyped = not kind and find(schema, "x-kubernetes-int-or-string") is not True
        return UNKNOWN if untyped else _schema_scalar(kind, find_str(schema, "format"))
    if find_str(schema, "x-kubernetes-map-type") == "atomic":
        return ListTypes(Relation.ATOMIC_MAP)
    additional = find(schema, "additionalProperties")
    element = _of_schema(additional) if isinstance(additional, dict) else UNKNOWN if additional is True else None
    properties = find_object(schema, "properties")
    if element is None and (not properties or find(schema, "x-kubernetes-preserve-unknown-fields") is True):
        element = UNKNOWN
    if not properties:
        return ListTypes(Relation.MAP, element=element)
    return ListTypes(
        Relation.STRUCT,
        element=element,
        load_fields=lambda: {name: _of_schema(as_object(value, name)) for name, value in properties.items()},
    )


_SCHEMA_SCALARS: Final = {
    ("string", ""): Scalar.STRING,
    ("string", "byte"): Scalar.STRING,
    ("integer", ""): Scalar.INT64,
    ("number", ""): Scalar.FLOAT,
    ("boolean", ""): Scalar.BOOL,
}
"""The scalar for each combination of type and format in a schema. A combination that is not listed allows any scalar."""


@cache
def _schema_scalar(kind: str, text_format: str) -> ListTypes:
    scalar = _SCHEMA_SCALARS.get((kind, text_format if kind == "string" else ""), Scalar.ANY)
    return SCALAR if scalar is Scalar.ANY else ListTypes(Relation.SCALAR, scalar=scalar, go_type=_GO_TYPES[scalar])


def _list_of_schema(schema: JsonObject) -> ListTypes:
    items = find_object(schema, "items")
    element = _of_schema(items)
    match find_str(schema, "x-kubernetes-list-type"):
        case "set":
            return ListTypes(Relation.SET, element=element)
        case "map":
            keys = tuple(str(key) for key in find_list(schema, "x-kubernetes-list-map-keys"))
            defaults = {key: find(items, "properties", key, "default") for key in keys}
            return ListTypes(
                Relation.KEYED,
                keys=keys,
                key_defaults={key: value for key, value in defaults.items() if value is not None},
                element=element,
            )
        case _:
            return ListTypes(Relation.ATOMIC_LIST, element=element)


@cache
def _data() -> JsonObject:
    text = DATA.read_bytes()
    return as_object(decode_json(text, max_bytes=MAX_DATA_BYTES, what=DATA.name), DATA.name)


@cache
def _struct(name: str) -> ListTypes:
    """Return the type that has this name in the data file. tools/kubernetes/generate_list_types.py explains the letters in the
    file.
    """
    entry = find_object(_data(), "types", name)
    codes = dict(_name_and_code(text) for text in find_str(entry, "o").split())

    def fields() -> Mapping[str, ListTypes]:
        others = find_object(entry, "f")
        return {field_name: _of_code(code or find(others, field_name)) for field_name, code in codes.items()}

    return ListTypes(
        Relation.ATOMIC_MAP if "a" in entry else Relation.STRUCT,
        zero=find_object(entry, "z"),
        pointers=frozenset(
            [field_name for field_name, code in codes.items() if code.startswith("=*")] + find_str(entry, "p").split()
        ),
        go_type=".".join(name.split(".")[-2:]),
        embedded={
            field_name: holder
            for holder in find_object(entry, "e")
            for field_name in find_str(entry, "e", holder).split()
        },
        closed=True,
        load_fields=fields,
    )


def _name_and_code(text: str) -> tuple[str, str]:
    """Split a field of the data file: ``replicas=*i`` → ``("replicas", "=*i")``; a name alone has no code."""
    name, equals, code = text.partition("=")
    return name, equals + code


@cache
def _scalar(code: str) -> ListTypes:
    """Return the scalar type for a code from the data file, such as ``=*s:v1.PullPolicy``."""
    letter, _, go_type = code.lstrip("=*").partition(":")
    scalar = Scalar(letter)
    if scalar is Scalar.ANY:
        return RAW  # any JSON is valid
    if scalar in _SCHEMAS:
        return ListTypes(Relation.UNKNOWN, scalar=scalar)
    relation = Relation.QUANTITY if scalar is Scalar.QUANTITY else Relation.SCALAR
    return ListTypes(relation, scalar=scalar, go_type=go_type or _GO_TYPES[scalar])


def _zero_keys(code: JsonValue, element: ListTypes) -> JsonObject:
    """Return the zero values of the list keys that Go prints even if an item leaves them out."""
    return {key: element.zero[key] for key in find_str(code, "k").split() if key in element.zero}


def _of_code(code: JsonValue) -> ListTypes:
    """Return the rules of one field or element from its form in the data file."""
    if isinstance(code, str):
        return RAW if not code else _scalar(code) if code.startswith("=") else _struct(code)
    strategies = frozenset(strategy for strategy in find_str(code, "s").split(",") if strategy)
    if name := find_str(code, "r"):
        struct = replace(_struct(name), strategies=strategies, merge_key=find_str(code, "x"))
        whole = find(code, "a")
        return struct if whole is None else replace(struct, relation=Relation.ATOMIC_MAP if whole else Relation.STRUCT)
    list_type = find_str(code, "l")
    if not list_type:
        relation = Relation.ATOMIC_MAP if find(code, "a") else Relation.MAP
        element = _of_code(find(code, "m"))
        go_type = find_str(code, "g") or f"map[string]{element.go_type}"
        return ListTypes(relation, element=element, strategies=strategies, go_type=go_type)
    element = _of_code(find(code, "e"))
    return ListTypes(
        {"set": Relation.SET, "map": Relation.KEYED}.get(list_type, Relation.ATOMIC_LIST),
        keys=tuple(find_str(code, "k").split()),
        key_defaults={**_zero_keys(code, element), **find_object(code, "d")},
        merge_key=find_str(code, "x"),
        strategies=strategies,
        element=element,
        go_type=find_str(code, "g") or f"[]{element.go_type}",
    )
