"""The selectors of a hook's configuration, formatted as strings for requests to the Kubernetes API. Pure.

The selectors are checked here as the API server would check them. So a mistake is reported when the hook is loaded, instead of
causing a watch that always fails.
"""

import re
from collections.abc import Iterator
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list, find_object, find_str
from wharfinger.kube.names import is_key_part, is_subdomain

_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.\[\]'-]*")
_ESCAPED: Final = re.compile(r"[\\,=]")


class SelectorError(FormatError):
    """The API server would refuse a selector."""


def label_selector(selector: JsonObject) -> str:
    """Format a label selector as ``a=b,c in (d,e),!f``; "" selects all objects. Raises SelectorError."""
    return ",".join(_label_terms(selector))


def field_selector(selector: JsonObject) -> str:
    """Format a field selector as ``metadata.name=a,status.phase!=b``. Raises SelectorError."""
    return ",".join(_field_term(expression) for expression in find_list(selector, "matchExpressions"))


def _label_terms(selector: JsonObject) -> Iterator[str]:
    for key in sorted(labels := find_object(selector, "matchLabels")):
        yield f"{_key(key)}={_value(find_str(labels, key))}"
    for expression in find_list(selector, "matchExpressions"):
        yield _label_term(expression)


def _label_term(expression: JsonValue) -> str:
    key, operator = _key(find_str(expression, "key")), find_str(expression, "operator")
    values = [_value(str(value)) for value in find_list(expression, "values")]
    if operator in ("In", "NotIn"):
        if not values:
            raise SelectorError(f"key {key!r}: operator {operator} needs values")
        return f"{key} {operator.lower()} ({','.join(values)})"
    if values:
        raise SelectorError(f"key {key!r}: operator {operator} takes no values")
    return key if operator == "Exists" else f"!{key}"


def _key(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not is_subdomain(prefix):
        raise SelectorError(f"{key[:80]!r} is not a label key: the part before the / must be a DNS name")
    if not is_key_part(name):
        raise SelectorError(
            f"{key[:80]!r} is not a label key: 1 to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends"
        )
    return key


def _value(value: str) -> str:
    if value and not is_key_part(value):
        raise SelectorError(
            f"{value[:80]!r} is not a label value: up to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends"
        )
    return value


def _field_term(expression: JsonValue) -> str:
    field = find_str(expression, "field")
    if not _FIELD.fullmatch(field):
        raise SelectorError(f"{field[:80]!r} is not a path of a field, such as metadata.name")
    operator = "!=" if find_str(expression, "operator") in ("!=", "NotEquals") else "="
    return f"{field}{operator}{_ESCAPED.sub(_escape, find_str(expression, 'value'))}"


def _escape(found: re.Match[str]) -> str:
    return "\\" + found.group()
