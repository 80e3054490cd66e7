"""The output of ``wharfinger package check``: a line for each finding and a summary, or a JSON document. Pure."""

import json

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import counted
from wharfinger.packages.author.package_check import CheckReport, Severity


def report_text(report: CheckReport) -> str:
    """Return a line for each finding, and the summary, without characters that control a terminal."""
    lines = [f"{finding.severity.value}: {finding}" for finding in report.findings]
    return "\n".join(_printable(line) for line in [*lines, _summary(report)])


def report_json(report: CheckReport) -> str:
    """Return the report as a JSON document."""
    definition = report.definition
    document: JsonObject = {
        "passed": report.passed,
        "package": None
        if definition is None
        else {
            "name": definition.name,
            "version": definition.version,
            "layout": definition.layout.value,
            "type": None if definition.type is None else definition.type.value,
            "settingsVersion": definition.conversions.current,
        },
        "conversionCases": report.cases,
        "settingsChecked": report.settings_checked,
        "findings": [
            {"severity": each.severity.value, "where": each.where, "message": each.message} for each in report.findings
        ],
    }
    return json.dumps(document, indent=2)  # in ASCII, without characters that control a terminal


def _summary(report: CheckReport) -> str:
    definition = report.definition
    who = "the package"
    if definition is not None:
        kind = definition.layout.value + (f", {definition.type.value}" if definition.type else "")
        who = " ".join(part for part in (definition.name, definition.version, f"({kind})") if part)
    said = [
        counted(report.count(Severity.ERROR), "error", none="no"),
        counted(report.count(Severity.WARNING), "warning", none="no"),
    ]
    if report.cases:
        said.append(f"{counted(report.cases, 'conversion')} tried")
    if report.settings_checked:
        said.append("settings checked")
    return f"{who}: {', '.join(said)}"


def _printable(text: str) -> str:
    """Return untrusted text as one line without control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
