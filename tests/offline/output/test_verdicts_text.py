"""The output formats of test verdicts."""

import json
from xml.etree.ElementTree import fromstring

from wharfinger.offline.output.verdicts_text import verdicts_json, verdicts_junit, verdicts_text
from wharfinger.offline.testing.case_file import Case
from wharfinger.offline.testing.verdicts import Verdict

VERDICTS = (
    Verdict(Case("a.test.yaml", "one", None, ()), ()),
    Verdict(Case("a.test.yaml", "two <&\x1b", None, ()), ("wrong <&\x1b", "more")),
)


def test_verdicts_are_printed_as_text() -> None:
    assert verdicts_text(VERDICTS).splitlines() == [
        "PASS  a.test.yaml: one",
        "FAIL  a.test.yaml: two <&\x1b",
        "      wrong <&\x1b",
        "      more",
        "2 tests: 1 passed, 1 failed",
    ]
    assert verdicts_text(VERDICTS[:1]).endswith("1 test: 1 passed, 0 failed\n")


def test_verdicts_are_printed_as_json() -> None:
    document = json.loads(verdicts_json(VERDICTS))
    assert (document["passed"], document["failed"]) == (1, 1)
    assert document["tests"][1]["problems"] == ["wrong <&\x1b", "more"]


def test_verdicts_are_printed_as_junit() -> None:
    suite = fromstring(verdicts_junit(VERDICTS))  # noqa: S314 - our own output
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    (failure,) = suite.findall("testcase/failure")
    assert (failure.text or "").splitlines()[1] == "more"
    assert "\x1b" not in verdicts_junit(VERDICTS)
