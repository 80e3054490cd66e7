"""The flags of global hooks for Modules: ``/<moduleName>Enabled`` beside ``/global`` in values patches (spec hook-protocol
§3.3).

A flag is treated like other values that a hook has patched. The record of the Module ``global`` keeps the last patch of each
flag. A flag is forgotten when a hook removes it. Pure.
"""

import re
from collections.abc import Iterable
from typing import Final

from wharfinger.formats.json.pointers import pointer_steps
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.hooks.running.values_patch import FLAG_SUFFIX
from wharfinger.runtime.resources.identity import GLOBAL

_VALUES: Final[dict[JsonValue, bool]] = {True: True, False: False, "true": True, "false": False}


def flags_in(patches: Iterable[JsonValue]) -> dict[str, bool]:
    """Return the flags that the values patches of global hooks have set, by the name of the Module. The last patch of each flag
    counts.
    """
    found: dict[str, bool] = {}
    for patch in patches:
        steps = pointer_steps(find_str(patch, "path"))
        if len(steps) != 1 or not steps[0].endswith(FLAG_SUFFIX):
            continue
        module = module_of(steps[0])
        if not may_be_flagged(module):
            continue
        found.pop(module, None)
        if find_str(patch, "op") == "add" and (said := flag_of(find(patch, "value"))) is not None:
            found[module] = said
    return found


def flag_document(patches: Iterable[JsonValue]) -> JsonObject:
    """Return the flags that the patches have set, as fields of the document to which values patches are applied. In this
    document, the flags are beside ``global``.
    """
    document: JsonObject = {}
    for patch in patches:
        steps = pointer_steps(find_str(patch, "path"))
        if len(steps) == 1 and steps[0].endswith(FLAG_SUFFIX) and find_str(patch, "op") == "add":
            document[steps[0]] = find(patch, "value")
    return document


def flag_of(value: JsonValue) -> bool | None:
    """Return the flag that a value means: ``true`` or ``false``, as a boolean or as a text; None for any other value."""
    return _VALUES.get(value) if isinstance(value, bool | str) else None


def may_be_flagged(name: str) -> bool:
    """Return whether global hooks may switch a package on and off: they may switch every Module except ``global`` itself."""
    return "." not in name and name != GLOBAL


def module_of(flag: str) -> str:
    """Return the Module that a flag is about: ``sysctl-tuner`` for ``sysctlTunerEnabled``."""
    return re.sub("[A-Z]", lambda letter: "-" + letter[0].lower(), flag.removesuffix(FLAG_SUFFIX))
