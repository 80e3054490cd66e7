"""The pages in docs/reference are those that the generator makes from the current code."""

import os
import sys

import pytest

from tools.docs.generate_reference import FOLDER, pages

REWRITE = os.environ.get("WHARFINGER_REWRITE") == "1"


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the width of the terminal after each test, because the generator sets it."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="argparse of another Python breaks lines of help differently"
)
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.md")))
def test_each_page_is_up_to_date(name: str) -> None:
    text = pages()[name]
    if REWRITE:
        (FOLDER / name).write_text(text)
    assert (FOLDER / name).read_text() == text, "run `make reference`"


def test_pages_do_not_depend_on_folders_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    here = pages()
    for name in ("HOME", "XDG_STATE_HOME", "WHARFINGER_STATE_DIR"):
        monkeypatch.setenv(name, "/another/folder")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert pages() == here


def test_each_generated_page_exists() -> None:
    assert set(pages()) == {path.name for path in FOLDER.glob("*.md")}
