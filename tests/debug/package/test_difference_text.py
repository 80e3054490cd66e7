from tests.debug.support.samples import DIFFERENCE
from wharfinger.debug.package.difference_text import coloured, difference_lines, summary_lines
from wharfinger.formats.terminal_text import is_safe
from wharfinger.runtime.package_details import DifferenceSnapshot, FieldChangeSnapshot, ObjectChangeSnapshot


def test_changes_are_printed_line_by_line() -> None:
    assert difference_lines(DIFFERENCE) == [
        "~ Deployment.apps prod/shop",
        "    ~ /spec/replicas: 1 -> 2",
        '    + /metadata/labels/new: "x"',
        "+ ConfigMap prod/new (as in the chart, without a dry run; its namespace comes first)",
        "- ConfigMap prod/old",
    ]
    assert summary_lines(DIFFERENCE) == [
        "objects: 1 created, 1 changed, 1 deleted, 4 unchanged",
        "note: 2 hooks would run",
    ]


def test_created_documents_and_removed_fields_are_printed() -> None:
    created = ObjectChangeSnapshot(
        "A b", "create", "dry run", (FieldChangeSnapshot("", "", '{"a":{"b":"\\u001b[31m"}}'),)
    )
    odd = ObjectChangeSnapshot("A c", "odd\x1b", "dry run", (FieldChangeSnapshot("", "", "{"),))
    less = ObjectChangeSnapshot("A d", "change", "dry run", (FieldChangeSnapshot("/x", "1"),))
    lines = difference_lines(DifferenceSnapshot("a", (created, odd, less)))
    assert lines[0] == "+ A b"
    assert lines[-1] == "    - /x: 1"
    assert all(is_safe(line) for line in lines)
    assert summary_lines(DifferenceSnapshot("a")) == ["no differences"]


def test_added_and_removed_lines_are_coloured() -> None:
    assert coloured("    + a") == "\x1b[32m    + a\x1b[0m"
    assert coloured("- a") == "\x1b[31m- a\x1b[0m"
    assert coloured("~ a") == "~ a"
