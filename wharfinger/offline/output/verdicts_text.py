"""The verdicts of tests as text for people, as JSON, and as JUnit's XML for CI systems."""

import json
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.output.junit import junit_report
from wharfinger.offline.testing.verdicts import Verdict


def verdicts_text(verdicts: Sequence[Verdict]) -> str:
    """Return a line for each test, its problems below it, and a summary."""
    return "".join(f"{line}\n" for line in _lines(verdicts))


def verdicts_json(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as ASCII JSON."""
    document: JsonObject = {
        "passed": sum(each.passed for each in verdicts),
        "failed": sum(not each.passed for each in verdicts),
        "tests": [
            {
                "file": each.case.file,
                "name": each.case.name,
                "passed": each.passed,
                "problems": [*each.problems],
            }
            for each in verdicts
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def verdicts_junit(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a JUnit report."""
    return junit_report("wharfinger test", list(map(_case, verdicts)))


def _case(verdict: Verdict) -> Element:
    made = Element("testcase", {"classname": printable(verdict.case.file), "name": printable(verdict.case.name)})
    if not verdict.passed:
        failure = SubElement(made, "failure", {"message": printable(verdict.problems[0])})
        failure.text = "\n".join(map(printable, verdict.problems))
    return made


def _lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for each in verdicts:
        yield f"{'PASS' if each.passed else 'FAIL'}  {each.case.file}: {each.case.name}"
        yield from (f"      {problem}" for problem in each.problems)
    failed = sum(not each.passed for each in verdicts)
    yield f"{counted(len(verdicts), 'test')}: {len(verdicts) - failed} passed, {failed} failed"
