"""The validation of ConfigMaps and Secrets: keys, sizes, required keys of a type, and immutability."""

import base64
import binascii
import json
from typing import Final

from wharfinger.control_plane.api.core.key_pairs import key_pair_problem
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.control_plane.objects.metadata import core_meta_errors
from wharfinger.control_plane.objects.names import config_key_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, immutable, invalid, required, too_long
from wharfinger.control_plane.wire.go_json import syntax_error
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find

SIZE_LIMIT: Final = 1024 * 1024
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_KEPT: Final = "field is immutable when `immutable` is set"
_NEEDED: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def _binary_size(value: JsonValue) -> int:
    """Return the number of bytes that a base64 text encodes."""
    return len(value) * 3 // 4 - value[-2:].count("=") if isinstance(value, str) else 0


def _config_map_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    data, binary = part(obj, "data") or {}, part(obj, "binaryData") or {}
    for key, value in data.items():
        if problems := config_key_problems(key):
            errors += each(f"data[{key}]", key, problems)
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += (len(value) if value.isascii() else len(value.encode())) if isinstance(value, str) else 0
    for key, value in binary.items():
        errors += each(f"binaryData[{key}]", key, config_key_problems(key))
        size += _binary_size(value)
    return [*errors, too_long("[]", SIZE_LIMIT)] if size > SIZE_LIMIT else errors


def _secret_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    data = part(obj, "data") or {}
    for key, value in data.items():
        errors += each(f"data[{key}]", key, config_key_problems(key))
        size += _binary_size(value)
    if size > SIZE_LIMIT:
        errors.append(too_long("data", SIZE_LIMIT))
    kind = text(obj, "type")
    return errors if kind in {"", "Opaque"} else errors + _type_errors(obj, kind, data)


def _type_errors(obj: JsonObject, kind: str, data: JsonObject) -> list[FieldError]:
    """Return the errors of the keys and annotations that a type of secret requires."""
    match kind:
        case "kubernetes.io/service-account-token":
            named = find(obj, "metadata", "annotations", ACCOUNT_NAME)
            return [] if named else [required(f"metadata.annotations[{ACCOUNT_NAME}]")]
        case "kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson":
            return _json_errors(data, _NEEDED[kind])
        case "kubernetes.io/basic-auth":
            names = ("username", "password")
            return [] if any(name in data for name in names) else [required(f"data[{name}]") for name in names]
        case "kubernetes.io/ssh-auth":
            return [] if data.get("ssh-privatekey") else [required("data[ssh-privatekey]")]
        case "kubernetes.io/tls":
            return [required(f"data[{name}]") for name in ("tls.crt", "tls.key") if name not in data]
        case _:
            return []


def _json_errors(data: JsonObject, key: str) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    problem = json_object_problem(decoded(data[key]))
    return [invalid(f"data[{key}]", "<secret contents redacted>", problem)] if problem else []


def decoded(value: JsonValue) -> bytes:
    """Return the bytes of a member of ``data``; empty if it is not base64."""
    try:
        return base64.b64decode(value) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        return b""


def json_object_problem(data: bytes) -> str:
    """Return Go's message about bytes that are not a JSON object; "" if they are one."""
    if problem := syntax_error(data):
        return problem
    try:
        value: JsonValue = json.loads(data.decode(errors="replace"))
    except (ValueError, RecursionError):
        return "exceeded max depth"
    if isinstance(value, dict) or value is None:
        return ""
    name = {bool: "bool", str: "string", list: "array"}.get(type(value), "number")
    return f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"


def _kept_errors(new: JsonObject, old: JsonObject, parts: tuple[str, ...]) -> list[FieldError]:
    """Return an error for each change of ``parts`` or of ``immutable`` itself, if the old object is immutable."""
    if old.get("immutable") is not True:
        return []
    errors = [] if new.get("immutable") is True else [forbidden("immutable", _KEPT)]
    return errors + [forbidden(name, _KEPT) for name in parts if (new.get(name) or {}) != (old.get(name) or {})]


def _config_map_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return _kept_errors(new, old, ("data", "binaryData")) + core_meta_errors(new, old) + _config_map_errors(new)


def _secret_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = immutable("type", text(new, "type"), text(old, "type"))
    return errors + _kept_errors(new, old, ("data",)) + core_meta_errors(new, old) + _secret_errors(new)


def _secret_warnings(new: JsonObject, _old: JsonObject | None) -> list[str]:
    """Return a warning if the key or the certificate of a TLS secret is invalid, or if they do not belong together."""
    if text(new, "type") != "kubernetes.io/tls":
        return []
    problem = key_pair_problem(decoded(find(new, "data", "tls.crt")), decoded(find(new, "data", "tls.key")))
    return [problem] if problem else []


CONFIG_MAP_RULES: Final = Rules(create=_config_map_errors, update=_config_map_update)
SECRET_RULES: Final = Rules(create=_secret_errors, update=_secret_update, warnings=_secret_warnings)
