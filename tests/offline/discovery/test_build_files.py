"""The files that a build of a folder reads."""

from pathlib import Path

import pytest

from tests.offline.support import write_tree
from wharfinger.offline.discovery.build_files import BuildFiles, is_below, is_below_any, listed_by, normal_path

LISTS = {
    "apps": frozenset({"apps/web.yaml", "base"}),
    "base": frozenset({"base/a.yaml", "apps"}),  # This is a cycle, which kustomize refuses.
    "plain/inner": frozenset({"plain/inner/listed.yaml"}),
    "plain/inner/deep": frozenset({"plain/inner/deep/x.yaml"}),
}
FILES = (
    "apps/commented-out.yaml",
    "apps/web.yaml",
    "base/a.yaml",
    "plain-beside/x.yaml",
    "plain/inner/deep/x.yaml",
    "plain/inner/listed.yaml",
    "plain/inner/other.yaml",
    "plain/more/y.yaml",
    "plain/x.yaml",
)


@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("apps", {"apps/web.yaml", "base/a.yaml"}),
        ("plain", {"plain/x.yaml", "plain/more/y.yaml", "plain/inner/listed.yaml"}),
        ("plain/inner/deep", {"plain/inner/deep/x.yaml"}),
        ("absent", set()),
        (
            ".",
            {
                "apps/web.yaml",
                "base/a.yaml",
                "plain-beside/x.yaml",
                "plain/inner/listed.yaml",
                "plain/more/y.yaml",
                "plain/x.yaml",
            },
        ),
    ],
)
def test_a_build_reads_listed_files_or_all_files_below_its_folder(folder: str, files: set[str]) -> None:
    build_files = BuildFiles(LISTS, FILES)
    assert build_files.files_of(folder) == files
    assert build_files.files_of(folder) == files  # The second result comes from the cache.


@pytest.mark.parametrize(
    ("text", "path"), [("./a/b/", "a/b"), ("", "."), ("./", "."), ("a/../b", "b"), ("../a", None), ("/a", "a")]
)
def test_paths_are_normalized(text: str, path: str | None) -> None:
    assert normal_path(text) == path


def test_a_kustomization_lists_paths_of_the_tree(tmp_path: Path) -> None:
    text = "resources: [a.yaml, ../base, 'https://example.com/x', ../../out, 7]\ncomponents: [./c]\nbases: text\n"
    write_tree(tmp_path, {"apps/kustomization.yaml": text, "bad/kustomization.yml": "a: b: c\n"})
    assert listed_by(tmp_path / "apps", "apps") == {"apps/a.yaml", "base", "apps/c"}
    assert listed_by(tmp_path / "bad", "bad") == listed_by(tmp_path / "absent", "absent") == frozenset()


def test_is_below_compares_whole_path_segments() -> None:
    assert is_below("a/b", "a")
    assert is_below("a", ".")
    assert not is_below("ab", "a")
    assert is_below_any("a/b/c", {"x", "a/b"})
    assert not is_below_any("a/bc", {"a/b", "a/bc/d"})
