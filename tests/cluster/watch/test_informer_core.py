"""The state machine of a reflector, which lists and watches objects for an informer or a stream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from wharfinger.cluster.watch.informer_core import (
    BACKOFF_CAP_S,
    LIVED_S,
    Asked,
    Effect,
    Event,
    Failed,
    Listed,
    Pause,
    Paused,
    Phase,
    ProtocolError,
    Seen,
    StartList,
    StartWatch,
    State,
    WatchEnded,
    backoff_s,
    start,
    step,
)


def run(*events: Event) -> tuple[State, list[Effect]]:
    """Return the state and all effects of these events."""
    state, effect = start()
    effects: list[Effect] = [effect]
    for event in events:
        state, following = step(state, event)
        if following is not None:
            effects.append(following)
    return state, effects


def test_a_list_is_followed_by_watches_from_its_revision() -> None:
    state, effects = run(Listed("5"), Seen("6"), Seen("9"), WatchEnded(1.0, 0.0))
    assert effects == [StartList(), StartWatch("5"), StartWatch("9")]
    assert (state.failures, state.phase) == (0, Phase.WATCHING)


def test_a_silent_watch_of_normal_length_is_not_a_failure() -> None:
    assert run(Listed("5"), WatchEnded(LIVED_S, 0.0))[1][-1] == StartWatch("5")


def test_a_watch_that_ends_at_once_causes_a_pause() -> None:
    state, effects = run(Listed("5"), WatchEnded(0.1, 0.0), Paused(), WatchEnded(0.1, 0.0), Paused())
    assert effects == [StartList(), StartWatch("5"), Pause(0.8), StartWatch("5"), Pause(1.6), StartWatch("5")]
    assert step(state, Seen("6"))[0].failures == 0


def test_a_failed_list_is_retried() -> None:
    assert run(Failed(gone=False, jitter=0.0), Paused())[1] == [StartList(), Pause(0.8), StartList()]


def test_a_failed_watch_resumes_at_its_revision() -> None:
    assert run(Listed("5"), Seen("7"), Failed(gone=False, jitter=0.0), Paused())[1][1:] == [
        StartWatch("5"),
        Pause(0.8),
        StartWatch("7"),
    ]


def test_a_server_that_was_unreachable_is_listed_again() -> None:
    broken = Failed(gone=False, jitter=0.0)
    assert run(Listed("5"), broken, Paused(), broken, Paused(), broken, Paused(), Listed("2"))[1][1:] == [
        StartWatch("5"),
        Pause(0.8),
        StartWatch("5"),
        Pause(1.6),
        StartList(),
        Pause(3.2),
        StartList(),
        StartWatch("2"),
    ]


def test_a_410_lists_at_once_but_not_in_a_loop() -> None:
    gone = Failed(gone=True, jitter=0.0)
    _, effects = run(Listed("5"), gone, Listed("6"), gone, Paused(), Listed("7"), Seen("8"), gone)
    assert effects == [
        StartList(),
        StartWatch("5"),
        StartList(),
        StartWatch("6"),
        Pause(1.6),
        StartList(),
        StartWatch("7"),
        StartList(),
    ]


def test_a_410_while_listing_is_a_failure() -> None:
    assert run(Failed(gone=True, jitter=0.0), Paused())[1] == [StartList(), Pause(0.8), StartList()]


@pytest.mark.parametrize("event", [Seen("1"), WatchEnded(1, 0), Paused()])
def test_unexpected_events_are_protocol_errors(event: Event) -> None:
    with pytest.raises(ProtocolError, match="cannot happen while the informer is listing"):
        step(State(), event)


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_is_bounded(failures: int, jitter: float) -> None:
    assert 0.4 <= backoff_s(failures, jitter) <= BACKOFF_CAP_S


def test_a_requested_list_replaces_a_watch_or_a_pause() -> None:
    broken = Failed(gone=False, jitter=0.0)
    state, effects = run(Listed("5"), Seen("7"), Asked())
    assert effects == [StartList(), StartWatch("5"), StartList()]
    assert (state.phase, state.failures) == (Phase.LISTING, 0)
    state, effects = run(broken, Asked())
    assert (effects, state.failures) == ([StartList(), Pause(0.8), StartList()], 1)
    assert run(Listed("5"), broken, Asked())[1] == [StartList(), StartWatch("5"), Pause(0.8), StartList()]


def test_a_request_during_a_list_starts_one_more_list() -> None:
    _, effects = run(Asked(), Asked(), Listed("5"), Listed("6"))
    assert effects == [StartList(), StartList(), StartWatch("6")]


def test_a_request_during_a_list_does_not_wait_for_the_pause_after_its_failure() -> None:
    broken = Failed(gone=False, jitter=0.0)
    state, effects = run(Asked(), broken, broken, Paused(), Listed("5"))
    assert effects == [StartList(), StartList(), Pause(1.6), StartList(), StartWatch("5")]
    assert state.failures == 2


def test_a_list_that_expires_twice_is_requested_without_pages() -> None:
    gone, broken = Failed(gone=True, jitter=0.0), Failed(gone=False, jitter=0.0)
    assert run(gone, Paused(), gone, Paused())[1][2::2] == [StartList(), StartList(whole=True)]
    assert run(gone, Paused(), broken, Paused(), gone, Paused())[1][-1] == StartList()
    assert run(gone, Paused(), gone, Paused(), Listed("5"), Seen("6"), gone)[1][-1] == StartList()
    assert run(gone, Paused(), gone, Paused(), broken, Paused())[1][-1] == StartList()


class Reflector(RuleBasedStateMachine):
    """A random test of the state machine. Its effects are carried out, and the server's answers are arbitrary."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.running = start()
        self.owed = False
        """True if a list was requested and has not begun."""
        self.served = False
        """True if the newest requested list is complete."""

    def tell(self, event: Event) -> None:
        state, effect = step(self.state, event)
        assert (effect is None) == (isinstance(event, Seen) or (isinstance(event, Asked) and self.listing()))
        self.state = state
        if effect is not None:
            self.running = effect
            if isinstance(effect, StartList):
                self.owed = False

    def listing(self) -> bool:
        return isinstance(self.running, StartList)

    @precondition(lambda self: self.listing())
    @rule()
    def listed(self) -> None:
        self.served = not self.owed
        self.tell(Listed("1"))

    @precondition(lambda self: isinstance(self.running, StartWatch))
    @rule(lived=st.floats(0, 9))
    def watch_ends(self, lived: float) -> None:
        self.tell(WatchEnded(lived, 0.0))

    @precondition(lambda self: isinstance(self.running, StartWatch))
    @rule()
    def sees(self) -> None:
        self.tell(Seen("2"))

    @precondition(lambda self: not isinstance(self.running, Pause))
    @rule(gone=st.booleans(), jitter=st.floats(0, 0.99))
    def fails(self, gone: bool, jitter: float) -> None:
        asked = self.owed
        self.tell(Failed(gone, jitter))
        if not gone:
            assert isinstance(self.running, StartList if asked else Pause)

    @precondition(lambda self: isinstance(self.running, Pause))
    @rule()
    def pause_ends(self) -> None:
        self.tell(Paused())

    @rule()
    def somebody_asks(self) -> None:
        self.owed, self.served = True, False
        self.tell(Asked())

    @invariant()
    def phase_and_action_agree(self) -> None:
        actions = {Phase.LISTING: StartList, Phase.WATCHING: StartWatch, Phase.PAUSING: Pause}
        assert isinstance(self.running, actions[self.state.phase])
        assert self.state.failures >= 0

    @invariant()
    def nothing_is_watched_before_who_asked_has_a_list(self) -> None:
        assert self.served or not isinstance(self.running, StartWatch)
        assert not self.owed or self.listing()


TestReflector = Reflector.TestCase
