"""The results of one run of a hook on its author's machine, as a document, and as a difference from the given values. Pure.

The report has the values that the daemon would keep after the run, or the reason why it would refuse the values patch. A hook
without a package may write into the section that its first operation names, because its own section is unknown. Responses to
webhooks are parsed if possible, and otherwise shown as they were written.
"""

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.pointers import pointer_steps
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json, decode_json, find_str, to_json
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.hooks.running.runner import HookOutcome, HookRun
from wharfinger.hooks.running.values_patch import ValuesPatchError, apply_values_patch
from wharfinger.hooks.watching.json_stream import MAX_BYTES

GLOBAL: Final = "global"
ADMISSION: Final = ("ADMISSION_RESPONSE_PATH", "VALIDATING_RESPONSE_PATH")
"""The two variables of the hook contract that name the file for the answer of an admission webhook. Both name the same file."""
CONVERSION: Final = "CONVERSION_RESPONSE_PATH"
ANSWERS: Final = (*ADMISSION, CONVERSION)


@dataclass(frozen=True, slots=True)
class RunReport:
    """The results of a run. ``values`` and ``config_values`` are the given values after the patches of the hook; ``problems``
    names each patch that the daemon would refuse, and the reason.
    """

    outcome: HookOutcome
    values: JsonObject
    config_values: JsonObject
    problems: tuple[str, ...]
    responses: JsonObject


def report_on(run: HookRun, outcome: HookOutcome, section: str) -> RunReport:
    """Make the report of a run; ``section`` is the key of the package's own values, "" if it is unknown."""
    problems: list[str] = []

    def patched(what: str, values: JsonObject, patch: Sequence[JsonValue]) -> JsonObject:
        if not patch or not outcome.succeeded:
            return values
        try:
            root = section or _root_of(patch)
            return apply_values_patch({root: {}, **values}, patch, root=root, flags=root == GLOBAL)
        except FormatError as error:
            problems.append(f"{what}: {error}")
            return values

    return RunReport(
        outcome,
        patched("values", run.values, outcome.values_patch),
        patched("config values", run.config_values, outcome.config_values_patch),
        tuple(problems),
        _responses(outcome.answers),
    )


def document_of(run: HookRun, report: RunReport) -> JsonObject:
    """Return the results as a document; value patches of a failed run are dropped, as the daemon would drop them.

    The document contains the values after the run only if the hook changed them.
    """
    outcome = report.outcome
    document: JsonObject = {
        "succeeded": outcome.succeeded,
        "exit": outcome.ending,
        "objectPatches": [*outcome.object_patches],
        "valuesPatch": [*outcome.values_patch] if outcome.succeeded else [],
        "configValuesPatch": [*outcome.config_values_patch] if outcome.succeeded else [],
        "metrics": [*outcome.metrics],
    }
    if report.values != run.values:
        document["values"] = report.values
    if report.config_values != run.config_values:
        document["configValues"] = report.config_values
    if report.responses:
        document["responses"] = report.responses
    document["usage"] = {
        "wallSeconds": round(outcome.wall_s, 6),
        "userSeconds": round(outcome.user_s, 6),
        "systemSeconds": round(outcome.system_s, 6),
        "maxRssBytes": outcome.max_rss_bytes,
    }
    return document


def diff_of(run: HookRun, report: RunReport) -> str:
    """Return what the run changes in the given values, as a unified diff of their YAML; "" if nothing changes."""
    return _diff("values", run.values, report.values) + _diff("config-values", run.config_values, report.config_values)


def _diff(name: str, before: JsonObject, after: JsonObject) -> str:
    lines = difflib.unified_diff(_lines(before), _lines(after), name, f"{name} after the hook", lineterm="\n")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _lines(values: JsonObject) -> list[str]:
    """Return values as lines of YAML, sorted by key; values that the YAML writer cannot express become one line of JSON."""
    ordered = decode_json(canonical_json(values), max_bytes=MAX_BYTES, what="values")
    with suppress(FormatError):
        return write_yaml(ordered).splitlines(keepends=True) if values else []
    return [canonical_json(values).decode() + "\n"]


def _root_of(patch: Sequence[JsonValue]) -> str:
    """Return the section that the first operation names. Raises ValuesPatchError if it names none."""
    with suppress(FormatError):
        steps = pointer_steps(find_str(patch[0], "path"))
        if steps:
            return GLOBAL if len(steps) == 1 and steps[0].endswith("Enabled") else steps[0]
    raise ValuesPatchError("the path of its first operation names no section of values; write a path such as /global/a")


def _responses(answers: Mapping[str, bytes]) -> JsonObject:
    found: JsonObject = {}
    admission = next((answers[name] for name in ADMISSION if answers.get(name, b"").strip()), b"")
    for name, data in (("admission", admission), ("conversion", answers.get(CONVERSION, b""))):
        if data.strip():
            found[name] = _read(data)
    return found


def _read(data: bytes) -> JsonValue:
    with suppress(FormatError):
        return to_json(decode_json(data, max_bytes=MAX_BYTES, what="the response"))
    return data.decode(errors="replace")
