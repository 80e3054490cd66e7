"""Case 9: results of filters as published hooks write them, and filters whose results differ from those of gojq.

All filters run as in a monitor: a worker process reads a text and writes a text.
"""

from typing import Final

import pytest

from tests.hooks.support.patience import PATIENT_FILTERS
from tests.programs import ROOT
from wharfinger.formats.json.value import JsonValue, canonical_json, decode_json
from wharfinger.hooks.watching.filters import FilterError
from wharfinger.hooks.watching.jq_pool import JqPool, open_jq_pool

DOCS: Final = ROOT / "docs" / "jq.md"
POD: Final[JsonValue] = {
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "d", "labels": {"b": "2", "a": "1"}, "generation": 9007199254740993},
    "spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "s", "image": "j:2"}]},
    "status": {"phase": "Running", "ready": True, "restarts": 0, "load": 0.25, "message": None},
}
GIVES: Final[dict[str, JsonValue]] = {
    # A filter gives null for no result, the result itself for one, and a list for several.
    "empty": None,
    '.spec.containers[] | select(.name == "none")': None,
    ".": POD,
    ".metadata.name": "web-0",
    ".status.restarts": 0,
    ".status.ready": True,
    ".status.message": None,
    ".status.load": 0.25,
    ".nothing": None,
    ".nothing.deeper[0]": None,
    ".spec.containers": [{"name": "c", "image": "i:1"}, {"name": "s", "image": "j:2"}],
    ".spec.containers[0]": {"name": "c", "image": "i:1"},
    ".spec.containers[].name": ["c", "s"],
    ".metadata.name, .metadata.namespace": ["web-0", "d"],
    ".metadata.name, empty": "web-0",
    "[.spec.containers[].image]": ["i:1", "j:2"],
    # Typical filters of hooks.
    "{name: .metadata.name, phase: .status.phase}": {"name": "web-0", "phase": "Running"},
    '.status.phase == "Running"': True,
    ".metadata.labels | keys": ["a", "b"],
    "[.metadata.labels[]]": ["1", "2"],
    ".metadata.labels | to_entries | map(.key + .value)": ["a1", "b2"],
    ".metadata.labels.a | tonumber + 1": 2,
    ".metadata.generation": 9007199254740993,
    "reduce .spec.containers[] as $c (0; . + ($c.image | length))": 6,
    'if .status.ready then "up" else "down" end': "up",
    '.spec.none // "default"': "default",
    'try error("x") catch .': "x",
    "def up: ascii_upcase; .metadata.name | up": "WEB-0",
    "del(.metadata, .spec, .status)": {"kind": "Pod"},
}
FAILS: Final = {
    "": "not given",
    ".metadata |": "syntax error",
    "unheard_of": "not defined",
    ".metadata.name.first": "Cannot index string",
    ".status.restarts[0]": "Cannot index number",
    '1, error("at the second result"), 3': "failed",
    ".metadata.labels.b - 1": "cannot be subtracted",
}
OTHERWISE: Final[dict[str, tuple[str, JsonValue]]] = {
    # The result of gojq, and the result here.
    "{b: 1, a: 2} | [.[]]": ("`[2, 1]`", [1, 2]),
    "9007199254740993 + 0": ("exact", 9007199254740992),
    "3.0 | tostring": ('`"3"`', "3.0"),
    "1e17 | tojson": ('`"100000000000000000"`', "1E+17"),
    '"ab" | test("a(?=b)")': ("an error (RE2)", True),
    "[0, 1, 2] | .[1.2:2.7]": ("`[1]`", [1, 2]),
    '"nan" | tonumber': ("an error", None),
    "null | reverse": ("an error", []),
}


async def given(pool: JqPool, program: str, value: JsonValue = POD) -> JsonValue:
    text = await pool.apply_text(program, canonical_json(value))
    return decode_json(text, max_bytes=len(text), what=program)


async def test_filters_return_their_results() -> None:
    async with open_jq_pool(None, workers=1, limits=PATIENT_FILTERS) as pool:
        assert {program: await given(pool, program) for program in GIVES} == GIVES
    assert len(GIVES) >= 29


async def test_the_first_error_fails_the_whole_filter() -> None:
    async with open_jq_pool(None, workers=1, limits=PATIENT_FILTERS) as pool:
        for program, why in FAILS.items():
            with pytest.raises(FilterError, match=why):
                await given(pool, program)
        assert await given(pool, ".kind") == "Pod"


async def test_invalid_programs_are_refused_without_an_object() -> None:
    async with open_jq_pool(None, workers=1, limits=PATIENT_FILTERS) as pool:
        for program in ("", ".metadata |", "unheard_of"):
            with pytest.raises(FilterError):
                await pool.check(program)
        for program in (".metadata.name.first", "error"):
            await pool.check(program)


async def test_reused_program_leaves_its_input_unchanged() -> None:
    value: JsonValue = {"spec": {"replicas": 1}, "list": [3, 1, 2]}
    before = canonical_json(value)
    async with open_jq_pool(None, workers=1, limits=PATIENT_FILTERS) as pool:
        for _ in range(3):
            assert await pool.apply(".spec.replicas += 1 | .list |= sort | [.spec.replicas, .list]", value) == [
                2,
                [1, 2, 3],
            ]
        assert canonical_json(value) == before
        for number in range(3):
            assert await given(pool, ".n * 2", {"n": number}) == 2 * number


async def test_differences_to_gojq_are_documented() -> None:
    table = DOCS.read_text()
    async with open_jq_pool(None, workers=1, limits=PATIENT_FILTERS) as pool:
        for program, (elsewhere, here) in OTHERWISE.items():
            assert await given(pool, program) == here
            shown = program.removeprefix('"ab" | ').replace("|", "\\|")
            (row,) = [line for line in table.splitlines() if shown in line and line.startswith("|")]
            assert elsewhere.strip("`") in row
