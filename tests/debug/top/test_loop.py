"""The event loop of the live view, with a terminal in memory."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.debug.support.top_samples import NOW, OVERVIEW, PAGE
from wharfinger.debug.client.polling import GIVE_UP_S
from wharfinger.debug.top.loop import Ending, Loop
from wharfinger.debug.top.machine import first_view
from wharfinger.debug.top.questions import Crashed
from wharfinger.debug.top.screen import Line
from wharfinger.debug.top.view import Answered, Failed, PageAnswered
from wharfinger.debug.top.wake import WakePipe, open_wake


@dataclass
class Keyboard:
    """A terminal in memory. After each draw, it runs the next one of ``actions``. ``drawn`` has all drawn screens."""

    reader: int
    writer: int
    dimensions: tuple[int, int] = (80, 24)
    actions: list[Callable[[], object]] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    watched: list[str] = field(default_factory=list)

    def size(self) -> tuple[int, int]:
        return self.dimensions

    def keys(self) -> list[str]:
        return os.read(self.reader, 4096).decode().split()

    def draw(self, lines: Sequence[Line]) -> None:
        self.drawn.append("\n".join("".join(span.text for span in line) for line in lines))
        if self.actions:
            self.actions.pop(0)()

    def is_gone(self) -> bool:
        return False

    def watch(self, name: str) -> None:
        self.watched.append(name)

    def press(self, keys: str) -> None:
        os.write(self.writer, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self.dimensions = (columns, lines)
        signal.raise_signal(signal.SIGWINCH)


@pytest.fixture
def keyboard() -> Iterator[Keyboard]:
    reader, writer = os.pipe()
    yield Keyboard(reader, writer)
    os.close(reader)
    os.close(writer)


def run(keyboard: Keyboard, prepare: Callable[[Loop, WakePipe], list[Callable[[], object]]]) -> Ending:
    with open_wake() as wake:
        loop = Loop(first_view(OVERVIEW, 80, 24), keyboard, keyboard.reader, wake)
        keyboard.actions = prepare(loop, wake)
        return loop.run(keyboard)


def test_keys_and_answers_change_the_picture(keyboard: Keyboard) -> None:
    later = replace(OVERVIEW, packages=OVERVIEW.packages[:1])
    ending = run(
        keyboard,
        lambda loop, _wake: [
            lambda: keyboard.press("down down enter"),
            lambda: loop.post(PageAnswered(PAGE)),
            lambda: keyboard.press("escape"),
            lambda: loop.post(Answered(later)),
            lambda: keyboard.press("q"),
        ],
    )
    assert ending == Ending(0)
    assert keyboard.watched == ["prod.shop", ""]
    assert "asking the daemon" in keyboard.drawn[1]
    assert "What to do:" in keyboard.drawn[2]
    assert "1 package" in keyboard.drawn[4]


def test_a_new_terminal_size_is_used_at_once(keyboard: Keyboard) -> None:
    run(keyboard, lambda _loop, _wake: [lambda: keyboard.resize(40, 10), lambda: keyboard.press("q")])
    assert [len(picture.splitlines()) for picture in keyboard.drawn] == [24, 10]
    assert max(map(len, keyboard.drawn[1].splitlines())) <= 40


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_loop(keyboard: Keyboard, number: signal.Signals) -> None:
    assert run(keyboard, lambda _loop, _wake: [lambda: signal.raise_signal(number)]) == Ending(128 + number)


def test_a_closed_terminal_ends_the_loop(keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keyboard, "is_gone", lambda _self: True)
    assert run(keyboard, lambda _loop, _wake: [lambda: keyboard.press(" ")]) == Ending(128 + signal.SIGHUP)


def test_a_long_missing_daemon_ends_the_loop_with_an_error(keyboard: Keyboard) -> None:
    late = NOW.replace(minute=NOW.minute + 1)
    assert GIVE_UP_S < 60
    ending = run(
        keyboard,
        lambda loop, _wake: [lambda: loop.post(Failed("no daemon", NOW)), lambda: loop.post(Failed("gone", late))],
    )
    assert ending == Ending(1, "gone")


def test_a_bug_in_the_thread_is_raised(keyboard: Keyboard) -> None:
    with pytest.raises(KeyError):
        run(keyboard, lambda loop, _wake: [lambda: loop.post(Crashed(KeyError("bug")))])


def test_the_picture_is_updated_without_an_event(keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.debug.top.loop.TICK_S", 0.0)
    run(keyboard, lambda _loop, _wake: [lambda: None, lambda: keyboard.press("q")])
    assert " old" in keyboard.drawn[1].splitlines()[0]
