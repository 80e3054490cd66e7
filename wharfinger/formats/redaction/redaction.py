"""The removal of secrets from objects that are printed: the values of Secrets, and values of sensitive keys.

The following values are replaced, at any depth:

* ``data`` and ``stringData`` of every Secret (also of Secrets in lists and watch events);
* the ``last-applied-configuration`` annotation, which repeats the object;
* strings and numbers under sensitive keys (``sensitive_keys``);
* the ``value`` beside a sensitive name, as in ``{name: DB_PASSWORD, value: …}``;
* the item of a list after a sensitive option such as ``--token``;
* values at the paths that the caller passes;
* in all other strings, the parts that ``redact_text`` replaces.

Names of Secrets are kept: ``secret: {secretName: tls}`` is a reference, not a secret.

The result is a new value; the argument is not changed. Redacting a second time changes nothing.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue
from wharfinger.formats.redaction.redaction_text import MARK, TextRedactor
from wharfinger.formats.redaction.sensitive_keys import is_sensitive_key, may_be_a_reference

RedactPath: TypeAlias = tuple[str | int, ...]
"""The path of a value to redact: the keys and indexes that lead to it from the root. ``"*"`` matches all keys or indexes of a
level.
"""

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SECRET_FIELDS: Final = frozenset({"data", "stringData"})
_NAMING: Final = frozenset({"name", "secretName", "path"})
_REFERENCE: Final = _NAMING | {
    *("namespace", "optional", "defaultMode", "items", "key", "kind", "apiVersion", "group", "apiGroup", "uid"),
    *("expirationSeconds", "audience", "mode"),
}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The rules for one value: the remaining steps of the caller's paths, and the redaction of text."""

    paths: tuple[RedactPath, ...]
    text: TextRedactor

    def below(self, step: str | int) -> "_Wanted":
        if not self.paths:
            return self
        return _Wanted(tuple(path[1:] for path in self.paths if path and path[0] in {step, "*"}), self.text)

    @property
    def is_here(self) -> bool:
        return any(not path for path in self.paths)


def redact_object(obj: JsonObject, *, paths: Collection[RedactPath] = (), secrets: Collection[str] = ()) -> JsonObject:
    """Return a printable copy of ``obj``. Never raises. Containers nested beyond MAX_DEPTH are replaced as a whole."""
    return _object(obj, _Wanted(tuple(paths), TextRedactor(secrets)), 0, in_secret_list=False)


def redact_value(value: JsonValue, *, paths: Collection[RedactPath] = (), secrets: Collection[str] = ()) -> JsonValue:
    """Return a printable copy of any JSON value, with the same replacements as in `redact_object`. Never raises."""
    return _value(value, _Wanted(tuple(paths), TextRedactor(secrets)), 0)


def _value(value: JsonValue, wanted: _Wanted, depth: int, *, in_secret_list: bool = False) -> JsonValue:
    if wanted.is_here:
        return _replaced(value)
    if isinstance(value, str):
        return wanted.text.redact(value)
    if not isinstance(value, dict | list):
        return value
    if depth >= MAX_DEPTH:
        return MARK
    if isinstance(value, dict):
        return _object(value, wanted, depth, in_secret_list=in_secret_list)
    after_flag = False
    items: list[JsonValue] = []
    for index, item in enumerate(value):
        if after_flag and isinstance(item, str) and not item.startswith("-"):
            items.append(_replaced(item))
        else:
            items.append(_value(item, wanted.below(index), depth + 1, in_secret_list=in_secret_list))
        after_flag = isinstance(item, str) and item.startswith("-") and _names_a_secret(item, wanted)
    return items


def _object(obj: JsonObject, wanted: _Wanted, depth: int, *, in_secret_list: bool) -> JsonObject:
    is_secret = obj.get("kind") == "Secret" or (in_secret_list and "kind" not in obj)
    is_sensitive_pair = any(_names_a_secret(obj.get(field), wanted) for field in ("name", "key"))
    result: JsonObject = {}
    for key, item in obj.items():
        printed = _unused_key(wanted.text.redact(key), result)
        below = wanted.below(key)
        if below.is_here or key == LAST_APPLIED:
            result[printed] = _replaced(item)
        elif (is_secret and key in _SECRET_FIELDS) or (is_sensitive_pair and key == "value"):
            result[printed] = _with_values_replaced(item, wanted, depth + 1)
        else:
            kept = _value(item, below, depth + 1, in_secret_list=key == "items" and obj.get("kind") == "SecretList")
            # A key is judged before and after its own redaction, because the redaction may change how the key ends.
            hides = _hides(key, item, kept) or _hides(printed, item, kept)
            result[printed] = _with_values_replaced(item, wanted, depth + 1) if hides else kept
    return result


def _names_a_secret(name: JsonValue, wanted: _Wanted) -> bool:
    return isinstance(name, str) and (is_sensitive_key(name) or is_sensitive_key(wanted.text.redact(name)))


def _hides(key: str, item: JsonValue, kept: JsonValue) -> bool:
    """Return whether the value under ``key`` is replaced; ``kept`` is the form in which the value is shown if it is not
    replaced.
    """
    return is_sensitive_key(key) and not (may_be_a_reference(key) and _is_reference(item) and _is_reference(kept))


def _is_reference(value: JsonValue) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict) and _is_reference(item) for item in value)
    return isinstance(value, dict) and value.keys() <= _REFERENCE and not _NAMING.isdisjoint(value)


def _with_values_replaced(value: JsonValue, wanted: _Wanted, depth: int) -> JsonValue:
    """Replace every string and number; keep the shape and the keys."""
    if not isinstance(value, dict | list):
        return _replaced(value)
    if depth >= MAX_DEPTH:
        return MARK
    if isinstance(value, list):
        return [_with_values_replaced(item, wanted, depth + 1) for item in value]
    result: JsonObject = {}
    for key, item in value.items():
        result[_unused_key(wanted.text.redact(key), result)] = _with_values_replaced(item, wanted, depth + 1)
    return result


def _replaced(value: JsonValue) -> JsonValue:
    """Return the mark that replaces a value, or the value itself if it is null, a boolean or empty.

    An empty value is no secret, and shows that the field is not set.
    """
    return value if value is None or isinstance(value, bool) or value in ("", [], {}) else MARK


def _unused_key(key: str, taken: JsonObject) -> str:
    """Return a key that is not in use yet, so that two keys do not become one when they are redacted."""
    free, count = key, 1
    while free in taken:
        count += 1
        free = f"{key} ({count})"
    return free


def redacted_texts(obj: JsonObject) -> set[str]:
    """Return, as texts, the values that `redact_object` would replace completely by the mark.

    The values are found by comparing the object with its redacted form, which has the same shape.
    """
    found: set[str] = set()
    pairs: list[tuple[JsonValue, JsonValue]] = [(obj, redact_object(obj))]
    while pairs:
        before, after = pairs.pop()
        if isinstance(before, dict) and isinstance(after, dict):
            pairs.extend(zip(before.values(), after.values(), strict=True))
        elif isinstance(before, list) and isinstance(after, list):
            pairs.extend(zip(before, after, strict=True))
        elif after == MARK and isinstance(before, str | int | float) and before != MARK:
            found.add(str(before))
    return found
