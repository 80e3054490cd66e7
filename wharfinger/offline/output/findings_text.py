"""Findings as text for people, as JSON, as SARIF for code reviews, and as JUnit's XML for CI systems."""

import json
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.checking.findings import Finding, Rule, Severity
from wharfinger.offline.output.junit import junit_report
from wharfinger.offline.store.identity import shown

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def findings_text(findings: Sequence[Finding], objects: int) -> str:
    """Return one line for each finding, and a summary."""
    errors = sum(each.severity is Severity.ERROR for each in findings)
    warnings = len(findings) - errors
    last = f"{counted(objects, 'object')} checked: {counted(errors, 'error')}, {counted(warnings, 'warning')}"
    return "".join(f"{line}\n" for line in [*map(str, findings), last])


def findings_json(findings: Sequence[Finding], objects: int) -> str:
    """Return the findings as ASCII JSON."""
    document: JsonObject = {
        "objects": objects,
        "findings": [
            {
                "rule": each.rule.value,
                "severity": each.severity.value,
                "message": each.message,
                "object": None if each.id is None else shown(each.id),
                "file": None if each.place is None else each.place.file,
                "line": None if each.place is None or not each.place.line else each.place.line,
            }
            for each in findings
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def findings_sarif(findings: Sequence[Finding], version: str) -> str:
    """Return the findings as SARIF 2.1.0."""
    rules: list[JsonValue] = [{"id": rule.value} for rule in Rule]
    results: list[JsonValue] = [_result(each) for each in findings]
    driver: JsonObject = {"name": "wharfinger", "version": version, "rules": rules}
    run: JsonObject = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def findings_junit(findings: Sequence[Finding], objects: int, *, strict: bool) -> str:
    """Return the findings as a JUnit report.

    Each finding is a test case, which fails if the finding is an error, or, with ``strict``, a warning. One more test case always
    passes, and states the number of objects that were checked.
    """
    checked = Element("testcase", {"classname": "wharfinger.check", "name": f"{objects} objects checked"})
    cases = [_case(each, is_failure=strict or each.severity is Severity.ERROR) for each in findings]
    return junit_report("wharfinger check", [checked, *cases])


def _case(finding: Finding, *, is_failure: bool) -> Element:
    who = shown(finding.id) if finding.id is not None else "the tree"
    made = Element("testcase", {"classname": f"wharfinger.check.{finding.rule.value}", "name": printable(who)})
    if finding.place is not None:
        made.set("file", printable(finding.place.file))
        if finding.place.line:
            made.set("line", str(finding.place.line))
    if is_failure:
        words = {"type": finding.severity.value, "message": printable(finding.message)}
        SubElement(made, "failure", words).text = printable(str(finding))
    else:
        SubElement(made, "system-out").text = printable(str(finding))
    return made


def _result(finding: Finding) -> JsonObject:
    who = f"{shown(finding.id)}: " if finding.id is not None else ""
    made: JsonObject = {
        "ruleId": finding.rule.value,
        "level": finding.severity.value,
        "message": {"text": f"{who}{finding.message}"},
    }
    if finding.place is not None:
        place: JsonObject = {"artifactLocation": {"uri": finding.place.file}}
        if finding.place.line:
            place["region"] = {"startLine": finding.place.line}
        made["locations"] = [{"physicalLocation": place}]
    return made
