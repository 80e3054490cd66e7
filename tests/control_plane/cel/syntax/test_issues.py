"""The format of CEL errors with their positions."""

from wharfinger.control_plane.cel.syntax.issues import MAX_ISSUES, Issue, format_issues


def test_an_issue_marks_its_position() -> None:
    assert format_issues([Issue(3, "x")], "ab\ncd") == "ERROR: <input>:2:1: x\n | cd\n | ^"
    assert format_issues([Issue(-1, "x")], "ab") == "ERROR: <input>:-1:0: x"
    assert format_issues([Issue(1, "x")], "é" * 2).endswith(" | \uff0e\uff3e")


def test_the_number_of_issues_is_limited() -> None:
    assert format_issues([Issue(0, "x")] * (MAX_ISSUES + 2), "a").endswith("2 more errors were truncated")
