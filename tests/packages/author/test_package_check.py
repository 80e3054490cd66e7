"""The findings that the check of a package reports."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.settings.test_check import FILES, RENAME, checker
from tests.packages.support.charts import WEB_SERVICE, write
from tests.packages.support.real_jq import RealJq
from wharfinger.packages.author.package_check import (
    CheckFinding,
    CheckReport,
    GivenSettings,
    Severity,
    check_package,
    read_given_settings,
)
from wharfinger.packages.errors import ArtifactError, ConversionError
from wharfinger.packages.settings.values import MAX_VALUES

CASES = "testcases: [{name: renamed, settings: {count: 1}, expected: {replicas: 1}}]"
GOOD = {**FILES, "openapi/conversions/testcases.yaml": CASES}


async def check(folder: Path, files: dict[str, str], given: GivenSettings | None = None) -> CheckReport:
    async with checker() as one:
        return await check_package(write(folder, files), one, given)


def told(report: CheckReport) -> list[str]:
    return [f"{finding.severity.value}: {finding}" for finding in report.findings]


async def test_a_valid_package_passes_the_check(tmp_path: Path) -> None:
    report = await check(tmp_path / "web", GOOD, GivenSettings({"count": 2}, 1))
    assert told(report) == []
    assert (report.passed, report.cases, report.settings_checked) == (True, 1, True)
    assert report.definition is not None
    assert report.definition.name == "web"


async def test_oddities_of_a_chart_file_are_warnings(tmp_path: Path) -> None:
    report = await check(tmp_path / "web", {"Chart.yaml": "name: web\nversion: 1.0\n", "hooks/.keep": ""})
    assert told(report) == [
        "warning: Chart.yaml line 2: version: a number is read as the string '1'; put it in quotes",
        "warning: Chart.yaml: apiVersion: missing; read as v1, as Helm reads it",
    ]
    assert report.passed


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "requirements: {applications: {mandatory: [{name: db}]}}",
            "mandatory[0].name: db: a Module has no namespace",
        ),
        (
            "requirements: {applications: {mandatroy: []}}",
            "applications.mandatroy: unknown key; did you mean 'mandatory'",
        ),
        ("subscriptions: [a, a]", "subscriptions[1]: a is listed twice"),
        (
            "licensing: {editions: {ee: {avaliable: true}}}",
            "editions.ee.avaliable: unknown key; did you mean 'available'",
        ),
    ],
)
async def test_fields_that_the_scheduler_cannot_use_are_errors(said: str, why: str, tmp_path: Path) -> None:
    (finding,) = (await check(tmp_path / "web", {"package.yaml": said})).findings
    assert finding.severity is Severity.ERROR
    assert why in finding.message


async def test_charts_and_module_folders_are_checked(tmp_path: Path) -> None:
    async with checker() as one:
        assert (await check_package(WEB_SERVICE, one)).passed
        findings = (await check_package(WEB_SERVICE, one, GivenSettings({"a": 1}))).findings
        assert {finding.severity for finding in findings} == {Severity.WARNING}
        assert any(each.where == "settings" and "nothing was checked here" in each.message for each in findings)
        assert any("no template" in each.message for each in findings)
    report = await check(tmp_path / "010-web", {"hooks/a.sh": ""})
    assert report.definition is not None
    assert (report.definition.name, report.definition.weight, report.passed) == ("web", 10, True)
    named = await check(tmp_path / "020-folder", {"module.yaml": "name: web"})
    assert named.definition is not None
    assert named.definition.name == "web"
    nameless = await check(tmp_path / "020-web", {"module.yaml": "weight: 1"})
    assert nameless.definition is not None
    assert nameless.definition.name == "web"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"package.yaml": "tpye: Module"}, "error: package.yaml: tpye: unknown key"),
        ({"package.yaml": "name: A"}, "error: package.yaml: name"),
        ({"crds/a.yaml": "a: 1"}, "error: crds/a.yaml: an object without apiVersion or kind"),
        ({"openapi/values.yaml": "a: ["}, "error: openapi/values.yaml"),
        ({"openapi/conversions/v3.yaml": ""}, "error: openapi/conversions/v3.yaml: version: required"),
        (
            {"openapi/conversions/v2.yaml": "{version: 2, conversions: [., 'del(', 'x ']}"},
            "error: openapi/conversions/v2.yaml: conversions[1]: jq filter 'del(': ",
        ),
        (
            {
                "openapi/settings.yaml": "{x-config-version: 2, x-deckhouse-validations: [{expression: 'self.', message: a}]}"
            },
            "x-deckhouse-validations",
        ),
        (
            {"openapi/conversions/testcases.yaml": "testcases: 1"},
            "error: openapi/conversions/testcases.yaml: testcases: expected a list",
        ),
        (
            {"openapi/conversions/testcases.yaml": CASES.replace("{replicas: 1}", "{count: 1}")},
            'error: openapi/conversions/testcases.yaml: testcases[0] (renamed): expected {"count":1}, got {"replicas":1}',
        ),
    ],
)
async def test_errors_of_a_package_are_reported_in_one_line_each(
    tmp_path: Path, changed: dict[str, str], says: str
) -> None:
    report = await check(tmp_path / "web", {**GOOD, **changed})
    assert not report.passed
    assert says in "\n".join(told(report))
    assert not any("\n" in line for line in told(report))


async def test_a_folder_without_a_package_is_one_error(tmp_path: Path) -> None:
    async with checker() as one:
        for folder in (tmp_path / "absent", tmp_path):
            report = await check_package(folder, one)
            assert (report.definition, report.passed, len(report.findings)) == (None, False, 1)


async def test_all_programs_that_do_not_compile_are_reported_and_none_runs(tmp_path: Path) -> None:
    files = {**GOOD, "openapi/conversions/v2.yaml": "{version: 2, conversions: ['del(', 'x ']}"}
    report = await check(tmp_path / "web", files, GivenSettings({"replicas": 0}))
    assert (report.count(Severity.ERROR), report.cases, report.settings_checked) == (2, 0, False)


async def test_risks_for_the_next_change_are_warnings(tmp_path: Path) -> None:
    report = await check(tmp_path / "web", FILES)
    warning = "warning: openapi/conversions/v2.yaml: no example in testcases.yaml converts to version 2"
    assert told(report) == [warning]
    assert report.passed
    schemas = {"openapi/settings.yaml": "type: object", "openapi/values.yaml": "type: object"}
    silent = {**GOOD, **schemas, "values.yaml": "{}"}
    report = await check(tmp_path / "silent", silent)
    assert told(report) == [
        "warning: the settings schema: has no x-config-version, but conversions lead to version 2; add it beside `type`"
    ]


async def test_given_settings_are_checked_against_the_package(tmp_path: Path) -> None:
    report = await check(tmp_path / "web", GOOD, GivenSettings({"replicas": 0, "old": "x"}))
    assert [(each.severity, each.where) for each in report.findings] == [
        (Severity.ERROR, "settings.replicas"),
        (Severity.WARNING, "settings.old"),
    ]
    report = await check(tmp_path / "web", GOOD, GivenSettings({"replicas": 1}, 9))
    assert [each.where for each in report.findings] == ["settings"]


async def test_a_dead_worker_raises_an_error(tmp_path: Path) -> None:
    async with checker(RealJq(dying={RENAME})) as one:
        with pytest.raises(ConversionError):
            await check_package(write(tmp_path / "web", GOOD), one)


class OnlyAtWork(RealJq):
    """A runner of jq programs whose check accepts every program, so that a program can fail only when it runs."""

    async def check(self, program: str) -> None:
        pass


async def test_a_conversion_program_that_times_out_is_an_error_of_the_package(tmp_path: Path) -> None:
    where = "settings cannot be converted to version 2, program 1 of 1 (openapi/conversions/v2.yaml)"
    folder = write(tmp_path / "web", GOOD)
    async with checker(OnlyAtWork(endless={RENAME})) as one:
        report = await check_package(folder, one, GivenSettings({"count": 2}, 1))
    late = f"the program takes too long: jq filter {RENAME!r}: it took longer than 5 s"
    assert [(each.where, each.message) for each in report.findings] == [
        ("openapi/conversions/testcases.yaml: testcases[0] (renamed)", f"{where}: {late}"),
        ("settings", f"{where}: {late}"),
    ]
    assert not report.passed
    assert not report.settings_checked
    async with checker(RealJq(endless={RENAME})) as one:
        report = await check_package(folder, one)
    assert [(each.where, each.message) for each in report.findings][:1] == [
        ("", f"openapi/conversions/v2.yaml: conversions[0]: {late}")
    ]


async def test_a_dead_worker_during_the_settings_check_raises_an_error(tmp_path: Path) -> None:
    async with checker(OnlyAtWork(dying={RENAME})) as one:
        with pytest.raises(ConversionError, match="its worker died"):
            await check_package(write(tmp_path / "web", FILES), one, GivenSettings({"count": 2}, 1))


def test_given_settings_are_read_from_a_file() -> None:
    assert read_given_settings(b"a: 1", "file", 3) == GivenSettings({"a": 1}, 3)
    assert read_given_settings(b"", "file", 0) == GivenSettings({}, 0)
    for data, says in (
        (b"[]", "file: expected an object"),
        (b"a: [", "file"),
        (b" " * (MAX_VALUES + 1), "over the limit"),
    ):
        with pytest.raises(ArtifactError, match=says):
            read_given_settings(data, "file", 0)


def test_a_finding_without_a_place_prints_only_its_message() -> None:
    finding = CheckFinding(Severity.ERROR, "", "bad")
    assert str(finding) == "bad"
    assert str(replace(finding, where="a")) == "a: bad"


VALUES_SCHEMA = (
    "type: object\nrequired: [token]\n"
    "properties: {token: {type: string}, size: {type: string}, list: {type: array, items: {type: integer}}}"
)


@pytest.mark.parametrize(
    ("schema", "values", "said"),
    [
        (
            "openapi/values.yaml",
            "{size: 3, list: [1, b]}",
            [
                "error: values.yaml: size: expected a string, found an integer",
                "error: values.yaml: list[1]: expected an integer, found a string",
            ],
        ),
        ("openapi/values.yaml", "{web: {size: 3}}", ["error: values.yaml: size: expected a string, found an integer"]),
        ("openapi/values.yaml", "{size: big}", []),
        ("openapi/settings.yaml", "{size: 3}", ["error: values.yaml: size: expected a string, found an integer"]),
        ("openapi/settings.yaml", "{size: big, internal: {a: 1}}", []),
        (
            "README",
            "{Platform: {}}",
            [
                "error: values.yaml: Platform: this name is reserved for the daemon's data for templates; choose another",
            ],
        ),
    ],
)
async def test_values_of_a_package_are_checked_against_its_schemas(
    schema: str, values: str, said: list[str], tmp_path: Path
) -> None:
    text = f"x-config-version: 1\n{VALUES_SCHEMA}" if schema == "openapi/settings.yaml" else VALUES_SCHEMA
    report = await check(tmp_path / "web", {"package.yaml": "{}", "values.yaml": values, schema: text})
    assert sorted(told(report)) == sorted(said)
    assert report.passed is not bool(said)


async def test_a_default_that_its_schema_refuses_is_an_error(tmp_path: Path) -> None:
    files = {
        "package.yaml": "{}",
        "openapi/settings.yaml": "{type: object, x-config-version: 1, properties: {size: {type: string, default: 3}}}",
        "openapi/values.yaml": "{x-extend: {schema: settings.yaml}, type: object}",
    }
    assert told(await check(tmp_path / "web", files)) == [
        "error: the settings schema: size: its default is refused by its schema: expected a string, found an integer"
    ]


async def test_an_invalid_value_is_reported_even_if_settings_can_replace_it(tmp_path: Path) -> None:
    files = {
        "package.yaml": "{}",
        "values.yaml": "{size: 3}",
        "openapi/settings.yaml": "{type: object, x-config-version: 1, properties: {size: {type: string}}}",
        "openapi/values.yaml": "{x-extend: {schema: settings.yaml}, type: object}",
    }
    assert told(await check(tmp_path / "web", files)) == [
        "error: values.yaml: size: expected a string, found an integer"
    ]
    assert told(await check(tmp_path / "web", files, GivenSettings({"size": "big"}))) == []
    assert not (await check(tmp_path / "web", files, GivenSettings({}))).passed
