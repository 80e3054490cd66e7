"""The variables that expressions of policies and webhooks may use, and the compilation of these expressions
(``apiserver/pkg/admission/plugin/cel``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.cel.checking.checker import MADE, PATCH, Checked, Fields
from wharfinger.control_plane.cel.checking.function_table import AUTHORIZER, RESOURCE_CHECK
from wharfinger.control_plane.cel.compiling import judged
from wharfinger.control_plane.cel.values.types import BOOL, DYN, NULL, STRING, Type, listed, mapped, read_type

OBJECT, OLD_OBJECT, PARAMS, REQUEST = "object", "oldObject", "params", "request"
NAMESPACE, VARIABLES, CHECKS = "namespaceObject", "variables", "authorizer"
OWN_CHECK: Final = "authorizer.requestResource"
_VARIABLES: Final = Type("struct", "kubernetes.variables")
_DECLARED: Final[Mapping[str, str]] = {
    "kubernetes.GroupVersionKind": "group:string version:string kind:string",
    "kubernetes.GroupVersionResource": "group:string version:string resource:string",
    "kubernetes.UserInfo": "username:string uid:string groups:list(string) extra:map(string,list(string))",
    "kubernetes.AdmissionRequest": (
        "kind:kubernetes.GroupVersionKind resource:kubernetes.GroupVersionResource subResource:string "
        "requestKind:kubernetes.GroupVersionKind requestResource:kubernetes.GroupVersionResource "
        "requestSubResource:string name:string namespace:string operation:string userInfo:kubernetes.UserInfo "
        "dryRun:bool options:dyn"
    ),
    "kubernetes.NamespaceSpec": "finalizers:list(string)",
    "kubernetes.NamespaceCondition": (
        "status:string type:string lastTransitionTime:timestamp message:string reason:string"
    ),
    "kubernetes.NamespaceStatus": "conditions:list(kubernetes.NamespaceCondition) phase:string",
    "kubernetes.NamespaceMetadata": (
        "name:string generateName:string namespace:string labels:map(string,string) annotations:map(string,string) "
        "UID:string creationTimestamp:timestamp deletionGracePeriodSeconds:int deletionTimestamp:timestamp "
        "generation:int resourceVersion:string finalizers:list(string)"
    ),
    "kubernetes.Namespace": (
        "metadata:kubernetes.NamespaceMetadata spec:kubernetes.NamespaceSpec status:kubernetes.NamespaceStatus"
    ),
}
FIELDS: Final[Fields] = {
    name: {field: read_type(kind) for field, _, kind in (part.partition(":") for part in fields.split())}
    for name, fields in _DECLARED.items()
}
"""The fields of the types of ``request`` and ``namespaceObject``."""
ALWAYS: Final[Mapping[str, Type]] = {
    OBJECT: DYN, OLD_OBJECT: DYN, NAMESPACE: Type("struct", "kubernetes.Namespace"),
    REQUEST: Type("struct", "kubernetes.AdmissionRequest"),
}  # fmt: skip
OF_AUTHORIZER: Final[Mapping[str, Type]] = {
    CHECKS: Type("struct", AUTHORIZER), OWN_CHECK: Type("struct", RESOURCE_CHECK),
}  # fmt: skip
CONFIGURATION: Final = Type("struct", MADE)
PATCHES: Final = listed(Type("struct", PATCH))
_RUNTIME_NAMES: Final = {
    "null": "null_type", "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Environment:
    """The optional variables that an expression may use. The variables in ``ALWAYS`` exist in every environment.

    If ``variables`` is None, the name ``variables`` is not declared at all. With ``patches``, expressions may construct objects
    and JSON patches.
    """

    params: bool = False
    authorizer: bool = True
    variables: tuple[tuple[str, Type], ...] | None = None
    patches: bool = False

    def declared(self) -> tuple[dict[str, Type], Fields]:
        """Return the types of the variables, and the fields of those types."""
        names = dict(ALWAYS)
        if self.params:
            names[PARAMS] = DYN
        if self.authorizer:
            names |= OF_AUTHORIZER
        if self.variables is None:
            return names, FIELDS
        names[VARIABLES] = _VARIABLES
        return names, {**FIELDS, _VARIABLES.name: dict(self.variables)}


@dataclass(frozen=True, slots=True)
class Expression:
    """The result of compiling an expression. If that failed, ``problem`` is the reason without ``compilation failed:``."""

    problem: str = ""
    checked: Checked | None = None

    @property
    def result(self) -> Type:
        """The type of the expression's value."""
        return DYN if self.checked is None else self.checked.result


def compiled(text: str, environment: Environment) -> Expression:
    """Compile an expression; its value may have any type."""
    names, fields = environment.declared()
    checked = judged(text, names, fields, patches=environment.patches)
    return Expression(checked) if isinstance(checked, str) else Expression("", checked)


def refusal(expression: Expression, *wanted: Type) -> str:
    """Return the reason why an expression is invalid or has a type that is not one of ``wanted``; "" if there is none.

    Without ``wanted``, any type is allowed.
    """
    if expression.problem:
        return f"compilation failed: {expression.problem}"
    if not wanted or expression.result in wanted:
        return ""
    found = runtime_name(expression.result)
    if len(wanted) == 1:
        return f"must evaluate to {runtime_name(wanted[0])} but got {found}"
    return f"must evaluate to one of [{' '.join(map(runtime_name, wanted))}] but got {found}"


def runtime_name(kind: Type) -> str:
    """Return the name that a type has at run time."""
    name = _RUNTIME_NAMES.get(kind.kind, kind.name)
    return f"{name}({', '.join(map(runtime_name, kind.params))})" if kind.params else name


CONDITION, MESSAGE, ANNOTATION = (BOOL,), (STRING,), (STRING, NULL)


def kept_type(kind: Type) -> Type:
    """Return the type that later expressions see for a variable whose expression has the type ``kind``. Scalars, lists and maps
    keep their type; every other type becomes dynamic.
    """
    if kind.kind == "list":
        return listed(kept_type(kind.params[0]))
    if kind.kind == "map":
        return mapped(kept_type(kind.params[0]), kept_type(kind.params[1]))
    return kind if kind.kind in _KEPT else DYN


_KEPT: Final = ("bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint")
