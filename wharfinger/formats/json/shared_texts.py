"""JSON values whose texts are shared: equal short texts are one object in memory.

The objects of a cluster repeat the same few texts thousands of times: kinds, namespaces, labels, reasons of conditions.
"""

import sys
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue

LONGEST: Final = 200
"""The length in characters up to which a text is shared; longer texts are rarely equal."""
DEEPEST: Final = 4
"""The depth of nesting down to which texts are shared. The texts in ``status.conditions`` are within this depth."""


def with_shared_texts(obj: JsonObject) -> JsonObject:
    """Return an equal object in which equal short texts, down to a depth of DEEPEST, are one object in memory that all callers
    share.
    """
    return {name: _shared(value, DEEPEST) for name, value in obj.items()}


def _shared(value: JsonValue, depth: int) -> JsonValue:
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= LONGEST else value
    if isinstance(value, dict) and depth:
        return {name: _shared(each, depth - 1) for name, each in value.items()}
    return [_shared(each, depth - 1) for each in value] if isinstance(value, list) and depth else value
