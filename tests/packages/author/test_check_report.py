"""Reports of `package check`, as text and as JSON."""

import json
from pathlib import Path

from tests.packages.support.charts import WEB_SERVICE, WEB_VERSION, write
from wharfinger.packages.author.check_report import report_json, report_text
from wharfinger.packages.author.package_check import CheckFinding, CheckReport, Severity
from wharfinger.packages.definition.definition import read_definition

ERROR = CheckFinding(Severity.ERROR, "a.yaml", "bad\x1b[31m\u202e")
WARNING = CheckFinding(Severity.WARNING, "", "odd\nand long")


def test_reports_are_printed_as_text(tmp_path: Path) -> None:
    assert report_text(CheckReport(None, (ERROR,))) == "error: a.yaml: bad [31m \nthe package: 1 error, no warnings"
    chart = read_definition(WEB_SERVICE, name="web-service", version="")
    assert report_text(CheckReport(chart, (), 1)) == (
        f"web-service {WEB_VERSION} (Chart): no errors, no warnings, 1 conversion tried"
    )
    files = {"package.yaml": "{type: Application}"}
    package = read_definition(write(tmp_path, files), name="web", version="")
    said = report_text(CheckReport(package, (WARNING, ERROR, ERROR), 2, settings_checked=True))
    assert said.splitlines() == [
        "warning: odd and long",
        "error: a.yaml: bad [31m ",
        "error: a.yaml: bad [31m ",
        "web (Package, Application): 2 errors, 1 warning, 2 conversions tried, settings checked",
    ]


def test_reports_are_printed_as_json(tmp_path: Path) -> None:
    chart = read_definition(WEB_SERVICE, name="web-service", version="")
    text = report_json(CheckReport(chart, (ERROR, WARNING), 3, settings_checked=True))
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == {
        "passed": False,
        "package": {
            "name": "web-service",
            "version": WEB_VERSION,
            "layout": "Chart",
            "type": None,
            "settingsVersion": 1,
        },
        "conversionCases": 3,
        "settingsChecked": True,
        "findings": [
            {"severity": "error", "where": "a.yaml", "message": "bad\x1b[31m\u202e"},
            {"severity": "warning", "where": "", "message": "odd\nand long"},
        ],
    }
    package = read_definition(write(tmp_path, {"package.yaml": "{type: Module}"}), name="web", version="")
    assert json.loads(report_json(CheckReport(package, ())))["package"]["type"] == "Module"
    assert json.loads(report_json(CheckReport(None, ()))) == {
        "passed": True,
        "package": None,
        "conversionCases": 0,
        "settingsChecked": False,
        "findings": [],
    }
