"""JUnit's XML, which CI systems read."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, tostring


def junit_report(name: str, cases: Sequence[Element]) -> str:
    """Return a report with one suite of these test cases; a case with an element ``failure`` has failed."""
    failed = sum(case.find("failure") is not None for case in cases)
    numbers = {"tests": str(len(cases)), "failures": str(failed), "errors": "0"}
    suite = Element("testsuite", {"name": name, **numbers})
    suite.extend(cases)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suite, encoding="unicode")}\n'
