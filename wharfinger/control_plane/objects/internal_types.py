"""The printed form of kube-apiserver's internal types, which some refusals show instead of the object that was sent.

The message "Pod updates may not change fields other than …" ends with the difference between two specs. The specs are printed
as the server's internal Go structs: names as in Go, in the order of the struct, nulls for unset fields. ``internal_types.json``
describes those structs; ``tools/kubernetes/generate_internal_types.py`` generates that table, and explains its format.

>>> internal_form("core.Toleration", {"key": "a"})["Key"]
'a'
"""

import difflib
import json
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Final

from wharfinger.control_plane.kubernetes_version import table
from wharfinger.control_plane.wire.field_errors import html_escaped
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.field_sets import same_value

_TABLE: Final = table(Path(__file__).with_name("internal_types.json"))
_HOST_FIELDS: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_CONTEXT: Final = 3


def internal_form(name: str, value: JsonValue) -> JsonObject:
    """Return a struct as the server's internal type prints it; ``name`` is the struct's name in ``internal_types.json``, such as
    ``core.PodSpec``.
    """
    found: JsonObject = {}
    source = value if isinstance(value, dict) else {}
    if name == "core.PodSpec":
        source = _with_host_fields(source)
    for printed, member, kind in _types()[name]:
        form = _form(kind, source.get(member))
        if printed == "+":
            found.update(form if isinstance(form, dict) else {})
        elif not printed.endswith("?"):
            found[printed] = form
        elif form not in (None, "", 0, False, [], {}) or (kind.startswith("*") and member in source):
            found[printed[:-1]] = form
    return found


def same_form(name: str, one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values of a struct are equal, if an empty value counts as an absent one."""
    return same_value(one, other) or _filled(internal_form(name, one)) == _filled(internal_form(name, other))


def _filled(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _filled(item) for name, item in value.items()} or None
    return [_filled(item) for item in value] or None if isinstance(value, list) else value


def internal_difference(name: str, old: JsonValue, new: JsonValue, *, but: Collection[str] = ()) -> str:
    """Return the unified diff of two structs, printed with an indent of one; the fields ``but`` (Go's names) are left out."""
    forms = (internal_form(name, value) for value in (old, new))
    before, after = (_lines({key: item for key, item in form.items() if key not in but}) for form in forms)
    return "".join(list(difflib.unified_diff(before, after, n=_CONTEXT))[2:])


def _lines(value: JsonObject) -> list[str]:
    text = html_escaped(json.dumps(value, ensure_ascii=False, indent=1))
    return [f"{line}\n" for line in text.split("\n")]


def _form(kind: str, value: JsonValue) -> JsonValue:
    if kind.startswith("*"):
        return None if value is None else _form(kind[1:], value)
    if kind.startswith("[]"):
        return [_form(kind[2:], item) for item in value] if isinstance(value, list) else None
    if kind.startswith("{}"):
        if not isinstance(value, dict):
            return None
        return {key: _form(kind[2:], value[key]) for key in sorted(value)}
    if "." in kind:
        return internal_form(kind, value)
    if value is not None:
        return value
    zero: dict[str, JsonValue] = {"string": "", "int": 0, "bool": False, "quantity": "0", "any": 0}
    return zero.get(kind)


def _with_host_fields(spec: JsonObject) -> JsonObject:
    """Return a Pod's spec with its host fields in the security context, and with only one field for the service account.

    The internal type has the host fields (``hostNetwork``, …) in the security context, and no deprecated ``serviceAccount``.
    """
    context = spec.get("securityContext")
    given: JsonObject = {name: spec[name] for name in _HOST_FIELDS if name in spec}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {
        **spec,
        "serviceAccountName": account,
        "securityContext": {**(context if isinstance(context, dict) else {}), **given},
    }


@cache
def _types() -> dict[str, list[list[str]]]:
    table: dict[str, list[list[str]]] = json.loads(_TABLE.read_text())
    return table
