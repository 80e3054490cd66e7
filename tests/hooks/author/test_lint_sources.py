"""The search for the file and line that a message of a check is about."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hooks.support.linting import package
from wharfinger.hooks.author.lint_sources import MAX_MESSAGE, Sources, finding, in_order
from wharfinger.packages.author.package_check import Severity
from wharfinger.packages.files.package_files import open_files

FILES = {
    "openapi/settings.yaml": "type: object\n\nproperties:\n  a:\n    type: string\n",
    "openapi/values.yaml": "# c\ntype: object\nitems: [1,\n2]\n",
    "templates/a.yaml": "1\n2\n",
    "empty.yaml": "",
}


@pytest.mark.parametrize(
    ("message", "where", "told"),
    [
        ("openapi/settings.yaml: properties.a.type: no", "", "openapi/settings.yaml:5: error: properties.a.type: no"),
        ("openapi/settings.yaml: properties.a.none: no", "", "openapi/settings.yaml:4: error: properties.a.none: no"),
        ("openapi/settings.yaml: zzz", "", "openapi/settings.yaml:1: error: zzz"),
        ("openapi/settings.yaml: line 4, column 2: bad", "", "openapi/settings.yaml:4: error: bad"),
        ("settings schema: properties.a: no", "", "openapi/settings.yaml:4: error: properties.a: no"),
        ("values schema: items[1].x: no", "", "openapi/values.yaml:4: error: items[1].x: no"),
        ("says no version", "the settings schema", "openapi/settings.yaml:1: error: says no version"),
        ("why", "openapi/values.yaml (case)", "openapi/values.yaml:2: error: why"),
        ("why", "settings.a", ".: error: settings.a: why"),
        ("empty.yaml: a: no", "", "empty.yaml:1: error: a: no"),
        ("no.yaml: a: no", "", ".: error: no.yaml: a: no"),
        ("nothing", "", ".: error: nothing"),
        (
            "release web: template: web/templates/a.yaml:2:3: executing: oh",
            "",
            "templates/a.yaml:2: error: release web: template: web/templates/a.yaml:2:3: executing: oh",
        ),
        ("at <templates/none.yaml:2:3>", "", ".: error: at <templates/none.yaml:2:3>"),
    ],
)
def test_messages_are_located_by_file_and_line(tmp_path: Path, message: str, where: str, told: str) -> None:
    sources = Sources(open_files(package(tmp_path, FILES), "web"))
    assert str(sources.located(Severity.ERROR, message, where)) == told


def test_messages_are_single_lines_without_control_characters_and_bounded() -> None:
    told = finding("a", 1, Severity.WARNING, "x\n\ty\x1b[1m" + "z" * 5_000)
    assert told.message.startswith("x y [1mzz")
    assert len(told.message) == MAX_MESSAGE


def test_findings_are_sorted_by_file_and_line_without_duplicates() -> None:
    a, b, c = (
        finding(file, line, severity, "m")
        for file, line, severity in (("a", 9, Severity.WARNING), ("a", 10, Severity.ERROR), ("b", 1, Severity.ERROR))
    )
    also = finding("a", 10, Severity.WARNING, "m")
    assert in_order([c, b, also, a, b]) == (a, b, also, c)


def test_unreadable_sources_have_no_lines(tmp_path: Path) -> None:
    folder = package(tmp_path, {})
    (folder / "folder").mkdir()
    sources = Sources(open_files(folder, "web"))
    assert (sources.text("folder"), sources.documents("folder"), sources.line("none", "a")) == (None, (), None)


@given(
    message=st.text(max_size=60)
    | st.sampled_from([f"{name}: " for name in FILES]).flatmap(lambda a: st.text().map(a.__add__))
)
def test_any_message_gets_a_printable_location(tmp_path_factory: pytest.TempPathFactory, message: str) -> None:
    sources = Sources(open_files(package(tmp_path_factory.getbasetemp(), FILES, name="any"), "any"))
    told = sources.located(Severity.ERROR, message)
    assert told.file == "." or told.line >= 1
    assert str(told).isprintable()
