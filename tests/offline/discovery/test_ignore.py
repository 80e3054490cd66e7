"""Patterns of ignored files."""

from pathlib import Path

import pytest

from wharfinger.offline.discovery.ignore import is_ignored, read_patterns


@pytest.mark.parametrize(
    ("patterns", "path", "folder", "ignored"),
    [
        ("*.bak.yaml", "apps/x.bak.yaml", False, True),
        ("*.bak.yaml", "apps/x.yaml", False, False),
        ("/apps", "apps", True, True),
        ("/apps", "more/apps", True, False),
        ("docs/", "docs", True, True),
        ("docs/", "docs", False, False),
        ("**/ci/**", "a/b/ci/x.yaml", False, True),
        ("apps/*/test.yaml", "apps/web/test.yaml", False, True),
        ("apps/*/test.yaml", "apps/web/deep/test.yaml", False, False),
        ("*.yaml\n!keep.yaml", "keep.yaml", False, False),
        ("# a comment\n\n", "a comment", False, False),
        ("?.yaml", "a.yaml", False, True),
        ("a/**/b.yaml", "a/b.yaml", False, True),
        ("[Tt]ests/", "deep/tests", True, True),
        ("*.[jt]s", "x.ts", False, True),
        (r"\#x", "#x", False, True),
        (r"\!x", "!x", False, True),
        ("x.yaml  ", "x.yaml", False, True),
    ],
)
def test_patterns_ignore_matching_paths(
    patterns: str, path: str, *, folder: bool, ignored: bool, tmp_path: Path
) -> None:
    (tmp_path / ".sourceignore").write_text(patterns)
    assert is_ignored(read_patterns(tmp_path, ""), path, is_folder=folder) is ignored


def test_patterns_of_a_folder_apply_only_below_it(tmp_path: Path) -> None:
    (tmp_path / ".krmignore").write_text("x.yaml\n")
    patterns = read_patterns(tmp_path, "apps/")
    assert is_ignored(patterns, "apps/x.yaml", is_folder=False)
    assert not is_ignored(patterns, "x.yaml", is_folder=False)
