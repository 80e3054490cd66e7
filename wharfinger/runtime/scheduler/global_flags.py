"""What global hooks say of Modules: ``/<moduleName>Enabled`` beside ``/global`` in values patches (spec hook-protocol §3.3).

A flag is a value like any other that a hook has patched: kept in the record, compacted, gone when it is removed. Pure.
"""

import re
from collections.abc import Iterable
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.hooks.running.values_patch import FLAG_SUFFIX
from wharfinger.kube.json_patch import pointer_steps
from wharfinger.runtime.resources.identity import GLOBAL

_VALUES: Final[dict[JsonValue, bool]] = {True: True, False: False, "true": True, "false": False}


def flags_in(patches: Iterable[JsonValue]) -> dict[str, bool]:
    """By name of the Module: what the patches that are kept say; of one flag the last word counts."""
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
    """The flags as they stand beside ``global`` in the document that a patch is applied to."""
    document: JsonObject = {}
    for patch in patches:
        steps = pointer_steps(find_str(patch, "path"))
        if len(steps) == 1 and steps[0].endswith(FLAG_SUFFIX) and find_str(patch, "op") == "add":
            document[steps[0]] = find(patch, "value")
    return document


def flag_of(value: JsonValue) -> bool | None:
    """``true``, ``false``, or the same as text; None for anything else."""
    return _VALUES.get(value) if isinstance(value, bool | str) else None


def may_be_flagged(name: str) -> bool:
    """Whether a global hook has a say in whether that is on: in Modules, but for the one whose hook it is."""
    return "." not in name and name != GLOBAL


def module_of(flag: str) -> str:
    """``sysctlTunerEnabled`` is about ``sysctl-tuner``."""
    return re.sub("[A-Z]", lambda letter: "-" + letter[0].lower(), flag.removesuffix(FLAG_SUFFIX))
