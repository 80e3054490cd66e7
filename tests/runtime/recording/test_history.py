"""The history of a package, from memory and from a recording, compared with an expected output."""

from pathlib import Path

from tests.runtime.support.recorded_install import DB, WEB, Install
from wharfinger.debug.printing.history import history_lines
from wharfinger.runtime.inspector import HistorySnapshot
from wharfinger.runtime.recording.history import history_of, names_in, recorded_history

GOLDEN = Path(__file__).parent / "goldens" / "history.txt"


def shown(history: HistorySnapshot | None) -> str:
    assert history is not None
    return "".join(f"{line.rstrip()}\n" for line in history_lines(history, None))


def test_the_history_of_an_install_matches_its_transcript() -> None:
    story = Install()
    assert shown(history_of(story.recorder.rings, WEB)) == GOLDEN.read_text()


def test_a_recording_gives_the_same_history_as_memory() -> None:
    story = Install()
    assert recorded_history(story.log.read(), WEB) == history_of(story.recorder.rings, WEB)
    assert recorded_history(story.log.read(), DB) == history_of(story.recorder.rings, DB)


def test_unknown_packages_have_no_history() -> None:
    story = Install()
    assert history_of(story.recorder.rings, "shop.cache") is None
    assert recorded_history(story.log.read(), "shop.cache") is None
    assert {name for record in story.log.read() for name in names_in(record)} == {WEB, DB}
