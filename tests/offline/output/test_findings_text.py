"""Findings in each output format."""

import json
from xml.etree.ElementTree import fromstring

from wharfinger.offline.checking.findings import Finding, Rule, Severity
from wharfinger.offline.output.findings_text import findings_json, findings_junit, findings_sarif, findings_text
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id

FINDINGS = (
    Finding(Rule.SERVER, Severity.ERROR, "refused\x1b", Id("ConfigMap", "n", "x"), Place("a.yaml", 3)),
    Finding(Rule.UNDEFINED, Severity.WARNING, "unknown", None, Place("folder")),
    Finding(Rule.NOTICE, Severity.WARNING, "odd"),
)


def test_findings_are_printed_as_text_and_json() -> None:
    assert findings_text(FINDINGS, 4).splitlines()[-1] == "4 objects checked: 1 error, 2 warnings"
    text = findings_json(FINDINGS, 4)
    assert "\x1b" not in text
    first = json.loads(text)["findings"][0]
    assert (first["rule"], first["object"], first["file"], first["line"]) == ("server", "ConfigMap n/x", "a.yaml", 3)


def test_sarif_has_levels_locations_and_known_rules() -> None:
    document = json.loads(findings_sarif(FINDINGS, "1.0"))
    results = document["runs"][0]["results"]
    assert [each["level"] for each in results] == ["error", "warning", "warning"]
    location = results[0]["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": "a.yaml"}, "region": {"startLine": 3}}
    assert "region" not in results[1]["locations"][0]["physicalLocation"]
    assert "locations" not in results[2]
    known = {rule["id"] for rule in document["runs"][0]["tool"]["driver"]["rules"]}
    assert {each["ruleId"] for each in results} <= known


def test_junit_counts_warnings_as_failures_if_strict() -> None:
    for strict, failed in ((False, 1), (True, 3)):
        suite = fromstring(findings_junit(FINDINGS, 4, strict=strict))  # noqa: S314 - our own text
        assert (suite.get("tests"), suite.get("failures")) == ("4", str(failed))
        assert len(suite.findall("testcase")) == 4
        assert len(suite.findall("testcase/failure")) == failed
        first = suite.findall("testcase")[1]
        assert (first.get("name"), first.get("file"), first.get("line")) == ("ConfigMap n/x", "a.yaml", "3")
        failure = first.find("failure")
        assert failure is not None
        assert (failure.get("type"), failure.get("message")) == ("error", r"refused\x1b")
    assert ' failures="0" ' in findings_junit((), 4, strict=True)
