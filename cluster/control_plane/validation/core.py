"""The rules of the core group's kinds that are neither Pods nor made of pod templates."""

import re
from typing import Final

from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.validation.field_errors import invalid_value, too_long
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.formats.json_value import JsonObject

CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
CONFIG_LIMIT: Final = 1024 * 1024
_CONFIG_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def _config_map_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for part in ("data", "binaryData"):
        entries = obj.get(part)
        for key, value in entries.items() if isinstance(entries, dict) else ():
            errors += [invalid_value(f"{part}[{key}]", key, problem) for problem in _config_key_problems(key)]
            size += len(str(value).encode())
    return errors + ([too_long("[]", CONFIG_LIMIT)] if size > CONFIG_LIMIT else [])


def _config_key_problems(key: str) -> list[str]:
    if len(key) > 253:
        return ["must be no more than 253 characters"]
    if not CONFIG_KEY.fullmatch(key):
        return [_CONFIG_KEY_RULE]
    if key in {".", ".."} or key.startswith(".."):
        return [f"must not be '{key}'" if key in {".", ".."} else "must not start with '..'"]
    return []


def _secret_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    entries = obj.get("data")
    for key, value in entries.items() if isinstance(entries, dict) else ():
        errors += [invalid_value(f"data[{key}]", key, problem) for problem in _config_key_problems(key)]
        size += len(str(value)) * 3 // 4
    return errors + ([too_long("data", CONFIG_LIMIT)] if size > CONFIG_LIMIT else [])


def _immutable(new: JsonObject, old: JsonObject) -> list[FieldError]:
    if old.get("immutable") is not True:
        return []
    why = "Forbidden: field is immutable when `immutable` is set"
    return [
        FieldError(part, "FieldValueForbidden", why)
        for part in ("immutable", "data", "binaryData")
        if new.get(part) != old.get(part)
    ]


CORE_RULES: Final[dict[str, Rules]] = {
    "ConfigMap": Rules(
        create=_config_map_errors, update=lambda new, old: _config_map_errors(new) + _immutable(new, old)
    ),
    "Secret": Rules(create=_secret_errors, update=lambda new, old: _secret_errors(new) + _immutable(new, old)),
}
