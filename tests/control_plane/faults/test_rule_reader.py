from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.faults.rule import (
    CutWatch,
    DropAfter,
    DropBefore,
    ErrorAnswer,
    Latency,
    Partition,
    Rule,
    Selection,
    SlowList,
    StaleRead,
)
from wharfinger.control_plane.faults.rule_reader import FaultRuleError, parse_file, parse_line, read_rules


def test_rules_of_all_faults_are_parsed_from_a_line() -> None:
    line = (
        "latency delay=200ms verb=list,watch kind=secrets; drop-before; drop-after times=1; error code=503 skip=1 every=2;"
        "throttle retry-after=3; cut-watch events=2; cut-watch after=1s; cut-watch; stale-read back=5 agent=kubectl*;"
        "slow-list delay=1ms namespace=a name=b; partition start=1s for=2s period=10s chance=0.5"
    )
    rules = parse_line(line)

    assert [rule.fault for rule in rules] == [
        Latency(0.2),
        DropBefore(),
        DropAfter(),
        ErrorAnswer(503, "ServiceUnavailable", "an injected fault"),
        ErrorAnswer(429, "TooManyRequests", "too many requests, please try again later", 3),
        CutWatch(2, None),
        CutWatch(None, 1.0),
        CutWatch(0, None),
        StaleRead(5),
        SlowList(0.001),
        Partition(1, 2, 10),
    ]
    assert rules[0].selection == Selection(verbs=frozenset({"list", "watch"}), kind="secrets")
    assert (rules[2].times, rules[3].skip, rules[3].every, rules[10].chance) == (1, 1, 2, 0.5)
    assert rules[8].selection == Selection(verbs=frozenset({"get", "list"}), agent="kubectl*")
    assert rules[9].selection == Selection(verbs=frozenset({"list"}), namespace="a", name="b")


def test_a_file_has_the_same_rules_as_a_line(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("- fault: error\n  verb: [create, patch]\n  code: 500\n  times: 2\n")

    assert read_rules(str(path)) == parse_line("error verb=create,patch code=500 times=2")
    assert read_rules("drop-before") == (Rule(DropBefore(), name="drop-before"),)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "found no rule"),
        ("explode", "there is no fault 'explode'; faults: latency"),
        ("latency", "delay is missing; write one such as delay=200ms"),
        ("latency delay=soon", "delay: "),
        ("latency delay=2h", "delay is 7200 s; the maximum is 3600 s"),
        ("latency delay=1s size=3", "unknown key size; known keys: verb"),
        ("latency delay=1s delay=2s", "delay is given twice"),
        ("latency fast", "'fast' is not key=value"),
        ("cut-watch verb=list", "cannot hit verb list; it can hit watch"),
        ("latency delay=1s verb=look", "cannot hit verb look; it can hit create"),
        ("error code=200", "code 200 is not an error code"),
        ("error times=-1", "times=-1 is not a number of at least 0"),
        ("error every=0", "every=0 is not a number of at least 1"),
        ("error chance=2", "chance=2 is not a number from 0 to 1"),
        ("error chance=x", "chance=x is not a number"),
        ("partition for=5s period=5s", "does not fit in a period of 5 s"),
        ("drop-before;" * 101, "found 101 rules; at most 100 are allowed"),
        ("x" * 100_001, "more than 100000 characters"),
    ],
)
def test_errors_in_lines_list_the_allowed_values(line: str, words: str) -> None:
    with pytest.raises(FaultRuleError, match=words):
        parse_line(line)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"fault: latency", "not a list of rules"),
        (b"- latency", "rule 1 is not a mapping"),
        (b"- {fault: latency, delay: null}", "delay is neither a string nor a number"),
        (b"- {fault: latency, delay: [1]}", "delay is neither"),
        (b"- [", "rules.yaml"),
        (b"#" * 100_001, "more than 100000 bytes"),
    ],
)
def test_invalid_rule_files_are_refused(text: bytes, words: str) -> None:
    with pytest.raises(FaultRuleError, match=words):
        parse_file(text, "rules.yaml")


@given(st.text(alphabet="latencydelaycut-watch=;,. 0123456789ms*\n", max_size=60))
def test_any_line_gives_rules_or_a_fault_rule_error(line: str) -> None:
    try:
        rules = parse_line(line)
    except FaultRuleError:
        return
    assert rules
