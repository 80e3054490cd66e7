"""The examples of conversions in a package."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.packages.support.real_jq import RealJq
from wharfinger.packages.definition.conversions import Conversion, ConversionChain
from wharfinger.packages.errors import ArtifactError, ConversionError
from wharfinger.packages.files.package_files import open_files
from wharfinger.packages.settings.conversion_cases import MAX_CASES, MAX_SHOWN, ConversionCase, read_cases, run_case

CHAIN = ConversionChain(3, (Conversion(2, ("del(.auth.password)",)), Conversion(3, ("del(.auth)", ".n += 0"))))


def read(folder: Path, text: str, name: str = "testcases.yaml") -> tuple[ConversionCase, ...]:
    return read_cases(open_files(write(folder, {f"openapi/conversions/{name}": text}), "web"), CHAIN)


def test_conversion_cases_are_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        testcases:
          - name: as text
            currentVersion: 1
            expectedVersion: 2
            settings: |
              auth: {password: x}
            expected: "auth: {}"
          - {settings: {auth: {}}, expected: {}}
          - {currentVersion: 2}
        """,
    )
    path = "openapi/conversions/testcases.yaml: testcases"
    assert found == (
        ConversionCase(f"{path}[0]", "as text", 1, 2, {"auth": {"password": "x"}}, {"auth": {}}),
        ConversionCase(f"{path}[1]", "testcases[1]", 1, 3, {"auth": {}}, {}),
        ConversionCase(f"{path}[2]", "testcases[2]", 2, 3, {}, {}),
    )
    (older,) = read(tmp_path / "older", "cases: [{name: a}]", "conversions_test.yaml")
    assert (older.name, older.where) == ("a", "openapi/conversions/conversions_test.yaml: cases[0]")
    assert read_cases(open_files(write(tmp_path / "none", {"a": ""}), "web"), CHAIN) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "expected an object, found a list"),
        ("testcase: []", "testcase: unknown key; did you mean 'testcases'?"),
        ("testcases: {}", "testcases: expected a list, found an object"),
        ("testcases: [1]", "testcases[0]: expected an object, found an integer"),
        ("testcases: [{version: 1}]", "testcases[0].version: unknown key"),
        (
            "testcases: [{currentVersion: 3}]",
            "testcases[0].currentVersion: expected a version before expectedVersion (3)",
        ),
        ("testcases: [{expectedVersion: 4}]", "testcases[0].expectedVersion: 4, but the newest version is 3"),
        ("testcases: [{settings: 'a: ['}]", "testcases[0].settings"),
        ("testcases: [{expected: '[]'}]", "testcases[0].expected: expected an object, found a list"),
        (f"testcases: [{'1, ' * (MAX_CASES + 1)}]", f"testcases: more than {MAX_CASES} cases"),
    ],
)
def test_invalid_conversion_cases_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        read(tmp_path, text)
    assert says in str(caught.value)
    assert str(caught.value).startswith("openapi/conversions/testcases.yaml: ")


async def test_a_case_passes_or_reports_the_difference() -> None:
    good = ConversionCase("here", "a", 1, 2, {"auth": {"password": "x"}, "n": 1}, {"auth": {}, "n": 1.0})
    assert await run_case(good, CHAIN, RealJq()) == ""
    bad = ConversionCase("here", "a", 1, 2, {"auth": {"password": "x"}}, {"auth": {"password": "x"}})
    assert await run_case(bad, CHAIN, RealJq()) == 'expected {"auth":{"password":"x"}}, got {"auth":{}}'
    long = ConversionCase("here", "a", 1, 2, {"a": "x" * 9999}, {})
    said = await run_case(long, CHAIN, RealJq())
    assert said == 'expected {}, got {"a":"' + "x" * (MAX_SHOWN - 6) + "…"


async def test_a_case_that_cannot_be_converted_is_reported() -> None:
    case = ConversionCase("here", "a", 1, 3, {"n": "text"}, {})
    assert "settings cannot be converted to version 3, program 2 of 2" in await run_case(case, CHAIN, RealJq())
    with pytest.raises(ConversionError):
        await run_case(case, CHAIN, RealJq(dying={".n += 0"}))
