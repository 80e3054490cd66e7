"""The line protocol of persistent hooks: the line that describes a run, and valid answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.pools.persistent.line_protocol import Answer, AnswerError, read_answer, run_line


def test_a_run_is_one_line_with_its_number_and_its_variables() -> None:
    line = run_line(7, {"A": "two\nlines", "B": "ä"})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"run": 7, "environment": {"A": "two\nlines", "B": "ä"}}


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b'{"run": 7, "status": 0}', Answer(0)),
        (b' {"status":255,"run":7,"message":"no","more":[1]}\r', Answer(255, "no")),
    ],
)
def test_answers(line: bytes, answer: Answer) -> None:
    assert read_answer(line, 7) == answer


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "expected"),
        (b"done", "print everything else to stderr"),
        (b"\xff\xfe", "expected"),
        (b"[]", "expected"),
        (b"[" * 100_000, "expected"),
        (b'{"run": 6, "status": 0}', "found the run 6"),
        (b'{"run": true, "status": 0}', "found the run True"),
        (b'{"run": "7", "status": 0}', "found the run '7'"),
        (b'{"status": 0}', "found the run None"),
        (b'{"run": 7}', "found the status None"),
        (b'{"run": 7, "status": 256}', "found the status 256"),
        (b'{"run": 7, "status": -1}', "found the status -1"),
        (b'{"run": 7, "status": false}', "found the status False"),
        (b'{"run": 7, "status": 0.0}', "found the status 0.0"),
        (b'{"run": 7, "status": 0, "message": 1}', "use a string"),
    ],
)
def test_other_lines_are_refused_with_the_expected_form(line: bytes, why: str) -> None:
    with pytest.raises(AnswerError, match="expected") as caught:
        read_answer(line, 7)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 1000


@given(st.binary(max_size=200), st.integers(0, 10))
def test_a_missing_line_is_a_separate_error(line: bytes, run: int) -> None:
    try:
        found = read_answer(line, run)
    except AnswerError:
        return
    assert json.loads(line)["run"] == run
    assert 0 <= found.status <= 255
