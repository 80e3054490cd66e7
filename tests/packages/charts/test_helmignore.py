"""The rules of .helmignore. Some of them are compared with the real Helm in test_chart.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.packages.charts.helmignore import MAX_PATTERN, is_ignored, read_rules
from wharfinger.packages.errors import ArtifactError


@pytest.mark.parametrize(
    ("rules", "path", "ignored"),
    [
        ("", "templates/.hidden.yaml", True),
        ("", "templates/x.yaml", False),
        ("", ".hidden", False),
        ("# a comment\n\n  *.swp  ", "deep/in/x.swp", True),
        ("# a comment", "# a comment", False),
        ("*.swp", "x.swpp", False),
        ("/x.txt", "x.txt", True),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/a/b.md", False),
        ("docs/*.md", "other/docs/a.md", False),
        ("docs/", "docs", False),
        ("?.txt", "a.txt", True),
        ("?.txt", "ab.txt", False),
        ("[abc].txt", "b.txt", True),
        ("[^abc].txt", "b.txt", False),
        ("[a-c].txt", "c.txt", True),
        ("[!a].txt", "!.txt", True),
        ("[[].txt", "[.txt", True),
        (r"[\]a].txt", "].txt", True),
        (r"[\]a].txt", "a.txt", True),
        ("[^a-c]x", "dx", True),
        ("[!a].txt", "b.txt", False),
        (r"\*.txt", "*.txt", True),
        (r"\*.txt", "a.txt", False),
        ("a.b", "axb", False),
        ("!*.yaml", "x.txt", True),
        ("!*.yaml", "x.yaml", False),
    ],
)
def test_rules_are_applied_to_files(rules: str, path: str, ignored: bool) -> None:
    assert is_ignored(read_rules(rules), path, is_folder=False) is ignored


@pytest.mark.parametrize(
    ("rules", "path", "ignored"), [("docs/", "docs", True), ("docs", "docs", True), ("!docs/", "docs", False)]
)
def test_rules_are_applied_to_folders(rules: str, path: str, ignored: bool) -> None:
    assert is_ignored(read_rules(rules), path, is_folder=True) is ignored


def test_a_negated_folder_rule_ignores_all_files() -> None:
    assert is_ignored(read_rules("!docs/"), "docs", is_folder=False)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("ok\na/**/b", "line 2.*does not support"),
        ("[a", "not closed"),
        ("[]a]", "empty"),
        ("[a-", "not closed"),
        ("[a-]", "not closed"),
        ("[", "not closed"),
        ("a\\", "backslash"),
        ("a" * (MAX_PATTERN + 1), "at most"),
        ("[z-a]", "not a valid pattern"),
    ],
)
def test_invalid_rules_are_refused_with_their_line(rules: str, why: str) -> None:
    with pytest.raises(ArtifactError, match=why):
        read_rules(rules)


@given(st.text(max_size=30) | st.text(alphabet="*?[]^-!\\/ab#\n", max_size=30), st.text(max_size=10))
def test_any_text_is_parsed_or_refused(text: str, path: str) -> None:
    try:
        rules = read_rules(text)
    except ArtifactError:
        return
    is_ignored(rules, path, is_folder=False)
