"""The validation of the names of devices, drivers, pools and attributes, and of the lists that contain them
(resource.k8s.io/v1).

As in kube-apiserver, a list that is too long causes one error, and its items are not validated one by one.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeVar

from wharfinger.control_plane.api.storage.csi_drivers import driver_name_errors
from wharfinger.control_plane.objects.lenient_fields import repeated
from wharfinger.control_plane.objects.names import rule, subdomain_problems
from wharfinger.control_plane.wire.field_errors import duplicate, each, invalid, required, too_long, too_many
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonValue
from wharfinger.kube.selectors import key_problems

POOL_LIMIT: Final = 253
ID_LIMIT: Final = 32
KEY_LIMIT: Final = 63 + 1 + ID_LIMIT
"""The maximum length of a qualified name: a domain, a slash and an identifier together."""
BINDING_LIMIT: Final = 4
_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER_RULE: Final = rule(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or "
    "'_'",
    _IDENTIFIER, "my_name", "MY_NAME", "MyName",
)  # fmt: skip
_ONE = TypeVar("_ONE")


def listed_errors(
    items: Sequence[_ONE], limit: int, field: str, errors_of: Callable[[_ONE, str], list[FieldError]]
) -> list[FieldError]:
    """Return the errors of the items of a list, or one error if it has more than ``limit`` items (-1: no limit)."""
    if 0 <= limit < len(items):
        return [too_many(field, len(items), limit)]
    return [error for index, item in enumerate(items) for error in errors_of(item, f"{field}[{index}]")]


def set_errors(
    items: Sequence[_ONE],
    limit: int,
    field: str,
    errors_of: Callable[[_ONE, str], list[FieldError]],
    key_of: Callable[[_ONE], Hashable],
    shown: Callable[[_ONE], JsonValue],
) -> list[FieldError]:
    """Return the errors of :func:`listed_errors`, and an error for each item whose key (``key_of``) has occurred before.

    ``shown`` returns the key as the error shows it.
    """
    errors = listed_errors(items, limit, field, errors_of)
    if 0 <= limit < len(items):
        return errors
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        if (key := key_of(item)) in seen:
            errors.append(duplicate(f"{field}[{index}]", shown(item)))
        seen.add(key)
    return errors


def pool_name_errors(name: str, field: str) -> list[FieldError]:
    """Return the errors of the name of a pool: domains, separated by slashes."""
    if not name:
        return [required(field)]
    errors = [too_long(field, POOL_LIMIT)] if len(name.encode()) > POOL_LIMIT else []
    for part in name.split("/"):
        errors += each(field, part, subdomain_problems(part))
    return errors


def qualified_name_errors(name: str, field: str) -> list[FieldError]:
    """Return the errors of the name of an attribute or a capacity: an identifier, optionally after a domain."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return _identifier_errors(name, field)
    if "/" in identifier:
        return []  # upstream reports no error for a second slash
    errors = driver_name_errors(domain, field) if domain else [invalid(field, "", "the domain must not be empty")]
    if not identifier:
        return [*errors, invalid(field, "", "the name must not be empty")]
    return errors + _identifier_errors(identifier, field)


def fully_qualified_name_errors(name: str, field: str) -> list[FieldError]:
    """Return the errors of a qualified name that must have a domain."""
    errors = qualified_name_errors(name, field)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(field, name, why))
    return errors


def _identifier_errors(name: str, field: str) -> list[FieldError]:
    errors = [too_long(field, ID_LIMIT)] if len(name.encode()) > ID_LIMIT else []
    return errors if re.fullmatch(_IDENTIFIER, name) else [*errors, invalid(field, name, _IDENTIFIER_RULE)]


def shortened(key: str, limit: int) -> str:
    """Return a key as field paths show it: ``...`` replaces the middle of a key that is longer than ``limit``."""
    if len(key) <= limit:
        return key
    rest = limit - 3
    return f"{key[: (rest + 1) // 2]}...{key[len(key) - rest // 2 :]}"


def binding_errors(conditions: list[str], failures: list[str], path: str) -> list[FieldError]:
    """Return the errors of a device's binding conditions and binding failure conditions."""
    named = {"bindingConditions": conditions, "bindingFailureConditions": failures}
    errors: list[FieldError] = []
    for name, items in named.items():
        errors += listed_errors(
            items, BINDING_LIMIT, f"{path}.{name}", lambda item, field: each(field, item, key_problems(item))
        )
    for name, items in named.items():
        twice = repeated(items)
        for index, item in enumerate(items):
            field = f"{path}.{name}[{index}]"
            errors += [duplicate(field, item)] if index in twice else []
            if items is failures and item in conditions:
                why = "bindingFailureConditions must not overlap with bindingConditions"
                errors.append(invalid(field, item, why))
    if failures and not conditions:
        why = "bindingConditions are required to use bindingFailureConditions"
        errors.append(invalid(f"{path}.bindingConditions", None, why))
    if conditions and not failures:
        why = "bindingFailureConditions are required to use bindingConditions"
        errors.append(invalid(f"{path}.bindingFailureConditions", None, why))
    return errors
