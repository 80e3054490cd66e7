"""The jq worker: results of filters, compared with those of gojq 0.12.17, and the real process."""

import io
import json
import resource
import signal
import subprocess
import sys
from typing import Final

import pytest

from wharfinger.formats.frames import MAX_FRAME_BYTES, FrameReader, framed
from wharfinger.formats.jq import worker as jq_worker
from wharfinger.formats.jq.protocol import (
    JqAnswer,
    JqProtocolError,
    JqRefusal,
    JqRequest,
    JqResults,
    JqText,
    RefusalKind,
    decode_answer,
    encode_request,
)
from wharfinger.formats.jq.worker import MESSAGE_CHARACTERS, PROGRAMS_KEPT, Programs, answer, serve
from wharfinger.formats.json.value import JsonValue, canonical_json

POD: Final[JsonValue] = {
    "metadata": {"name": "web", "labels": {"b": "2", "a": "1"}, "generation": 9007199254740993},
    "status": {"phase": "Running", "ready": [True, None, 1.5]},
    "text": "a,b, c",
}
GIVES: Final[dict[str, list[JsonValue]]] = {
    # These results are those of gojq 0.12.17.
    ".": [POD],
    ".metadata.name": ["web"],
    ".missing.deeper": [None],
    "empty": [],
    "1, 2": [1, 2],
    "{n: .metadata.name, p: .status.phase}": [{"n": "web", "p": "Running"}],
    '.status.phase | . == "Running"': [True],
    ".metadata.generation": [9007199254740993],
    ".metadata.generation | tojson": ["9007199254740993"],
    "[.metadata.labels[]]": [["1", "2"]],
    ".metadata.labels | keys": [["a", "b"]],
    ".metadata.labels | to_entries": [[{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]],
    "{b: 1, a: 2} | to_entries | map(.key)": [["a", "b"]],
    ".metadata.labels | with_entries(.value |= tonumber)": [{"a": 1, "b": 2}],
    "del(.status, .text, .metadata.labels) | .metadata.generation = 1": [
        {"metadata": {"name": "web", "generation": 1}}
    ],
    '.text | [splits(", *")]': [["a", "b", "c"]],
    '.text | gsub(","; ";")': ["a;b; c"],
    "env, $ENV, env.PATH, $ENV.HOME": [{}, {}, None, None],
    "1.0, 1e3, 10/2, 10/4": [1, 1000, 5, 2.5],
    "nan, ([nan] | tojson)": [None, "[null]"],
    "[limit(2; repeat(1))]": [[1, 1]],
    'try error("x") catch .': ["x"],
    "try error({a: 1}) catch .a": [1],
    "def f(x): x * 2; f(21)": [42],
    "# a comment\n.text # and another": ["a,b, c"],
    ".text | @base64 | @base64d": ["a,b, c"],
    '"\\u0000\\ud83d\\ude00"': ["\0\U0001f600"],
    # gojq's library refuses to compile these functions. Here they change nothing.
    "debug | debug(.text) | stderr | .text": ["a,b, c"],
    ".metadata.labels | keys_unsorted": [["a", "b"]],
    # Remaining differences from gojq (docs/jq.md).
    "{b: 1, a: 2} | tojson": ['{"b":1,"a":2}'],
    "1e17 | tojson": ["1E+17"],
    "[0, 1, 2] | .[1.2:2.7]": [[1, 2]],
    '("nan" | tonumber), (null | reverse), ({} | abs)': [None, [], {}],
    "{b: 1, a: 2} | [.[]]": [[1, 2]],
    "3.0 | tostring": ["3.0"],
    "9007199254740993 + 0": [9007199254740992],
    '"ab" | test("a(?=b)")': [True],
}
REFUSES: Final[dict[str, tuple[RefusalKind, str]]] = {
    "": (RefusalKind.COMPILE, "Top-level program not given"),
    "  # only a comment": (RefusalKind.COMPILE, "Top-level program not given"),
    ".a |": (RefusalKind.COMPILE, "syntax error"),
    "1) | (2": (RefusalKind.COMPILE, "syntax error"),
    "nothing(1)": (RefusalKind.COMPILE, "nothing/1 is not defined at <top-level>, line 1"),
    "$nothing": (RefusalKind.COMPILE, "$nothing is not defined"),
    'import "a" as a; .': (RefusalKind.COMPILE, "syntax error, unexpected import"),
    'include "/etc/passwd"; .': (RefusalKind.COMPILE, "syntax error, unexpected include"),
    "\0": (RefusalKind.COMPILE, "NUL"),
    "input": (RefusalKind.RUN, "input is not available in a filter"),
    "[inputs]": (RefusalKind.RUN, "input is not available in a filter"),
    "1, halt": (RefusalKind.RUN, "halt is not available in a filter"),
    "halt_error, halt_error(3)": (RefusalKind.RUN, "halt is not available in a filter"),
    '1, error("first"), error("second")': (RefusalKind.RUN, "the program failed on this object"),
    ".text.name": (RefusalKind.RUN, "Cannot index string with string"),
    "error(null)": (RefusalKind.RUN, "the program failed on this object"),
    '"m" | modulemeta': (RefusalKind.RUN, "modulemeta is not available in a filter"),
    '"x" * 20000000': (RefusalKind.SIZE, "more than 16777216 bytes of results"),
    'repeat("x" * 1000000)': (RefusalKind.SIZE, "more than"),
    # Remaining differences from gojq (docs/jq.md).
    '"abc" | .[1]': (RefusalKind.RUN, "Cannot index string with number"),
    "{(1): 2}": (RefusalKind.COMPILE, "Cannot use number (1) as object key"),
    r'"\ud83d"': (RefusalKind.COMPILE, "surrogate pair"),
}


def ask(program: str, value: JsonValue = POD) -> JqAnswer:
    return decode_answer(answer(Programs(), JqRequest(program, canonical_json(value))))


@pytest.mark.parametrize("program", GIVES)
def test_filters_return_their_results(program: str) -> None:
    assert ask(program) == JqResults(tuple(GIVES[program]))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", REFUSES)
def test_failing_filters_return_a_refusal(program: str) -> None:
    kind, message = REFUSES[program]
    said = ask(program)
    assert isinstance(said, JqRefusal)
    assert (said.kind, message in said.message) == (kind, True), said


def test_filters_cannot_load_module_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("modules")
    (folder / "m.json").write_text('"found"')
    (folder / "m.jq").write_text("def f: 1;")
    for program in (
        f'import "{folder}/m" as $m; $m',
        f'include "{folder}/m"; f',
        f'# \n import "{folder}/m" as m; m::f',
    ):
        said = ask(program)
        assert isinstance(said, JqRefusal)
        assert said.kind is RefusalKind.COMPILE


def test_a_long_message_is_cut() -> None:
    said = ask("x" * 100_000)
    assert isinstance(said, JqRefusal)
    assert len(said.message) == MESSAGE_CHARACTERS


def test_compiling_a_filter_does_not_run_the_filter() -> None:
    programs = Programs()
    assert decode_answer(answer(programs, JqRequest("error", None))) == JqResults(())
    assert isinstance(decode_answer(answer(programs, JqRequest("(", None))), JqRefusal)


def test_an_input_that_is_not_json_is_refused() -> None:
    said = decode_answer(answer(Programs(), JqRequest(".", b"[1")))
    assert isinstance(said, JqRefusal)
    assert said.kind is RefusalKind.RUN


@pytest.mark.parametrize(
    ("program", "text", "gives"),
    [
        ("[.[]]", b'{"b": 2.0, "a": 1}', b"[1,2]"),
        ("empty", b"null", b"null"),
        (".[]", b'[{"z":1,"a":1e2}, 2]', b'[{"a":100,"z":1},2]'),
    ],
)
def test_all_results_are_returned_as_one_canonical_text(program: str, text: bytes, gives: bytes) -> None:
    assert decode_answer(answer(Programs(), JqRequest(program, text, whole=True))) == JqText(gives)


@pytest.mark.parametrize(
    ("program", "text", "why"),
    [
        (".", b"[1", "the object: "),
        (".", b"[" * 300 + b"]" * 300, "the object: nested deeper"),
        ("reduce range(300) as $i (.; [.])", b"1", "its result: nested deeper"),
        (".a.b", b'{"a":"secret"}', "Cannot index string with string"),
        ("(", b"1", "syntax error"),
    ],
)
def test_errors_replace_the_combined_text_without_values(program: str, text: bytes, why: str) -> None:
    said = decode_answer(answer(Programs(), JqRequest(program, text, whole=True)))
    assert isinstance(said, JqRefusal)
    assert why in said.message
    assert "secret" not in said.message


@pytest.mark.slow
def test_programs_are_cached_and_the_oldest_dropped() -> None:
    programs = Programs()
    first, second = programs.get("0"), programs.get("1")
    for number in range(2, PROGRAMS_KEPT):
        programs.get(str(number))
    assert programs.get("0") is first
    programs.get("-1")
    assert programs.get("0") is first
    assert programs.get("1") is not second


def test_a_run_does_not_affect_the_next_one() -> None:
    programs = Programs()
    request = JqRequest("limit(2; .[])", b"[1,2,3]")
    assert [decode_answer(answer(programs, request)) for _ in range(3)] == [JqResults((1, 2))] * 3
    broken = JqRequest(".[] | 1 / .", b"[1,0,2]")
    assert isinstance(decode_answer(answer(programs, broken)), JqRefusal)
    assert decode_answer(answer(programs, JqRequest(".[] | 1 / .", b"[1,2]"))) == JqResults((1, 0.5))


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return a list of the soft limits that are requested. They are not set, because they could kill the test process."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, soft_and_hard: found.append((which, soft_and_hard[0])))
    return found


def test_a_worker_serves_until_the_end_of_its_input(limits: list[tuple[int, int]]) -> None:
    requests = b"".join(framed(encode_request(JqRequest(str(number), b"null"))) for number in range(3))
    answers = io.BytesIO()
    serve(io.BytesIO(requests + b"\0\0\0\x09half"), answers)
    assert [*read_answers(answers.getvalue())] == [JqResults((number,)) for number in range(3)]
    assert [which for which, _ in limits] == [resource.RLIMIT_CPU] * 3
    assert all(0 < soft < 10_000 for _, soft in limits)


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("requests", [(MAX_FRAME_BYTES + 1).to_bytes(4, "big"), framed(b"{}")])
def test_an_invalid_request_is_not_served(requests: bytes) -> None:
    with pytest.raises(JqProtocolError):
        serve(io.BytesIO(requests), io.BytesIO())


def read_answers(data: bytes) -> list[JqAnswer]:
    reader = FrameReader(MAX_FRAME_BYTES)
    reader.feed(data)
    found = []
    while (payload := reader.take()) is not None:
        found.append(decode_answer(payload))
    return found


def run_worker(*programs: str) -> tuple[list[JqAnswer], subprocess.CompletedProcess[bytes]]:
    """Send a request for each program to the real process, whose environment has a secret.

    Return its answers, and the completed process.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-m", jq_worker.__name__],
        input=b"".join(framed(encode_request(JqRequest(program, b"null"))) for program in programs),
        capture_output=True,
        check=False,
        cwd="/",
        env={"TOKEN": "secret", "HOME": "/"},
        timeout=300,
    )
    return read_answers(done.stdout), done


def test_the_worker_process_has_no_environment_and_no_stderr() -> None:
    said, done = run_worker("1 + 1", "nothing", "env, $ENV", "debug", '"x" | stderr')
    assert (done.returncode, done.stderr) == (0, b"")
    assert said[0] == JqResults((2,))
    assert isinstance(said[1], JqRefusal)
    assert said[2:] == [JqResults(({}, {})), JqResults((None,)), JqResults(("x",))]
    assert json.dumps(str(said)).count("secret") == 0


def test_a_filter_that_exhausts_memory_ends_only_its_process() -> None:
    said, done = run_worker("1", 'reduce range(40) as $i ("0123456789"; . + .) | length', "2")
    assert said[0] == JqResults((1,))
    assert len(said) == 1
    assert done.returncode in {-signal.SIGABRT, -signal.SIGSEGV, 1}, done
