"""The fields in which two objects differ, with secret values masked. Pure.

A changed secret is shown as a changed field: the original objects are compared, and the printed values are taken from
redacted copies.
"""

import json
from collections.abc import Collection, Iterator
from typing import Final

from wharfinger.cluster.releases.prediction import as_stored
from wharfinger.formats.json.pointers import pointer_of
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.redaction.redaction import redact_object
from wharfinger.formats.redaction.redaction_text import MARK
from wharfinger.runtime.package_details import FieldChangeSnapshot

MAX_FIELDS: Final = 200
"""The limit on the number of changed fields that are listed for one object."""
MAX_VALUE_CHARS: Final = 20_000
_ABSENT: Final = object()


def field_changes(
    before: JsonObject | None, after: JsonObject | None, secrets: Collection[str]
) -> tuple[tuple[FieldChangeSnapshot, ...], int]:
    """Return the changed fields, in the order of the new object, and the number of changed fields beyond the limit.

    A new object is one change of the whole document, with the pointer "".
    """
    if after is None:
        return (), 0
    new = as_stored(after)
    masked_new = redact_object(new, secrets=secrets)
    if before is None:
        return (FieldChangeSnapshot("", "", _text(masked_new)),), 0
    old = as_stored(before)
    masked_old = redact_object(old, secrets=secrets)
    found = [
        FieldChangeSnapshot(pointer_of(path), _shown(masked_old, path, was), _shown(masked_new, path, becomes))
        for path, was, becomes in differences(old, new)
    ]
    return tuple(found[:MAX_FIELDS]), max(len(found) - MAX_FIELDS, 0)


def differences(old: object, new: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool, bool]]:
    """Yield the path of each value that differs, whether the value exists in ``old``, and whether it exists in ``new``.

    Lists of the same length are compared item by item, lists of different lengths as a whole.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*new, *old]):
            yield from differences(old.get(key, _ABSENT), new.get(key, _ABSENT), (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, becomes) in enumerate(zip(old, new, strict=True)):
            yield from differences(was, becomes, (*path, str(index)))
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield path, old is not _ABSENT, new is not _ABSENT


def _shown(masked: JsonObject, path: tuple[str, ...], is_there: bool) -> str:  # noqa: FBT001
    """Return the value at a path of the masked settings as text; "" unless ``is_there``.

    If masking has removed the path, for example by renaming a key, return the text that replaces secrets.
    """
    if not is_there:
        return ""
    value: JsonValue = masked
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return json.dumps(MARK)
    return _text(value)


def _text(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= MAX_VALUE_CHARS else json.dumps(f"({len(text)} characters)")
