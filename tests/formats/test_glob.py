"""Globs, which match as in git and in bounded time."""

import fnmatch
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.formats.glob import MAX_ALTERNATIVES, MAX_PATTERN, path_glob, text_glob


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("a.yaml", "a.yaml", True),
        ("a.yaml", "b/a.yaml", False),
        ("*.yaml", "a.yaml", True),
        ("*.yaml", "b/a.yaml", False),
        ("**/*.yaml", "a.yaml", True),
        ("**/*.yaml", "b/c/a.yaml", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "a/x/yb", False),
        ("a/**", "a/x/y", True),
        ("a/**", "a", False),
        ("a/**/**/b", "a/b", True),
        ("[Tt]ests", "tests", True),
        ("*.[jt]s", "a.ts", True),
        ("*.[!jt]s", "a.ts", False),
        ("*.[^jt]s", "a.cs", True),
        ("a[/]b", "a/b", False),
        ("[a-c]x", "bx", True),
        ("[c-a]x", "bx", False),
        ("[]]", "]", True),
        ("[a", "[a", False),
        (r"\#x", "#x", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("a*b*c", "aXbYc", True),
        ("a*b*c", "abcc", True),
        ("a*b*c", "acb", False),
        ("a?c", "a/c", False),
        ("{a,b}", "a", False),
        ("a**b", "aXb", True),
    ],
)
def test_path_globs_match_paths(pattern: str, path: str, found: bool) -> None:
    assert bool(path_glob(pattern).match(path)) is found


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("*.yaml", "a/b.yaml", True),
        ("{a,b}/*.yaml", "b/c/d.yaml", True),
        ("{a,b}/*.yaml", "c/d.yaml", False),
        ("{*.json,*.yml}", "x.yml", True),
        ("a?c", "a/c", True),
        ("a[!x]c", "abc", True),
        ("a\nb", "a\nb", True),
        ("*", "a\nb", True),
    ],
)
def test_text_globs_match_across_slashes(pattern: str, text: str, found: bool) -> None:
    assert bool(text_glob(pattern).match(text)) is found


def test_patterns_over_a_limit_match_nothing() -> None:
    assert not path_glob("a" * (MAX_PATTERN + 1)).match("a" * (MAX_PATTERN + 1))
    assert not text_glob("{a,b}" * 7).match("a" * 7)
    assert MAX_ALTERNATIVES < 2**7
    assert text_glob("{a,b}" * 6).match("abbaab")


@pytest.mark.parametrize("compiled", [path_glob, text_glob])
def test_every_pattern_is_fast(compiled: object) -> None:
    assert callable(compiled)
    begin = time.process_time()
    for pattern in ("*a" * 40 + "b", "**/" * 30 + "*a*a*a*b", "**/*a/" * 20 + "b", "?*" * 50 + "b"):
        assert not compiled(pattern).match("a" * 60 + "/" + "a/" * 30 + "a" * 60)
    assert time.process_time() - begin < 5  # backtracking over all stars would take hours


ALPHABET = st.text("ab*?[]!-", max_size=12)


@settings(max_examples=scaled(5000, 200), deadline=None)
@given(pattern=ALPHABET, text=st.text("ab[]!-", max_size=10))
def test_patterns_without_slashes_agree_with_fnmatch(pattern: str, text: str) -> None:
    """The patterns contain no ``[``. If a ``[`` is not closed, fnmatch matches it literally, while git matches nothing with the
    pattern.
    """
    if "[" in pattern:
        pattern = pattern.replace("[", "")
    assert bool(text_glob(pattern).match(text)) is fnmatch.fnmatchcase(text, pattern)


@pytest.mark.slow
@settings(max_examples=scaled(300, 30), deadline=None)
@given(
    pattern=st.lists(st.sampled_from(["a", "b", "*", "**", "?", "a*", "*b", "[ab]", "[!a]"]), min_size=2, max_size=4),
    path=st.lists(st.sampled_from(["a", "b", "ab", "ba", "aab"]), min_size=1, max_size=5),
)
def test_patterns_with_slashes_agree_with_git(
    tmp_path_factory: pytest.TempPathFactory, pattern: list[str], path: list[str]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "glob"
    if not folder.exists():
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (Path(folder) / ".gitignore").write_text("/" + "/".join(pattern) + "\n")
    expression = path_glob("/".join(pattern))
    # git also ignores everything below an ignored folder.
    ours = any(expression.match("/".join(path[:count])) for count in range(1, len(path) + 1))
    command = ["git", "-C", str(folder), "check-ignore", "--no-index", "-q", "/".join(path)]
    assert ours is (subprocess.run(command, check=False).returncode == 0), (pattern, path)
