"""The reflector's machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.informer_core import (
    BACKOFF_CAP_S,
    LIVED_S,
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
    """All effects of these events in turn."""
    state, effect = start()
    effects: list[Effect] = [effect]
    for event in events:
        state, following = step(state, event)
        if following is not None:
            effects.append(following)
    return state, effects


def test_list_then_watch_from_there_and_on() -> None:
    state, effects = run(Listed("5"), Seen("6"), Seen("9"), WatchEnded(1.0, 0.0))
    assert effects == [StartList(), StartWatch("5"), StartWatch("9")]
    assert (state.failures, state.phase) == (0, Phase.WATCHING)


def test_a_silent_watch_that_lived_is_no_failure() -> None:
    assert run(Listed("5"), WatchEnded(LIVED_S, 0.0))[1][-1] == StartWatch("5")


def test_a_watch_that_ends_at_once_is_waited_out() -> None:
    state, effects = run(Listed("5"), WatchEnded(0.1, 0.0), Paused(), WatchEnded(0.1, 0.0), Paused())
    assert effects == [StartList(), StartWatch("5"), Pause(0.8), StartWatch("5"), Pause(1.6), StartWatch("5")]
    assert step(state, Seen("6"))[0].failures == 0


def test_a_failed_list_is_tried_again() -> None:
    assert run(Failed(gone=False, jitter=0.0), Paused())[1] == [StartList(), Pause(0.8), StartList()]


def test_a_failed_watch_goes_on_where_it_was() -> None:
    assert run(Listed("5"), Seen("7"), Failed(gone=False, jitter=0.0), Paused())[1][1:] == [
        StartWatch("5"),
        Pause(0.8),
        StartWatch("7"),
    ]


def test_a_server_that_was_away_may_come_back_with_another_past() -> None:
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


def test_gone_lists_at_once_but_not_in_a_loop() -> None:
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


def test_gone_while_listing_is_a_failure() -> None:
    assert run(Failed(gone=True, jitter=0.0), Paused())[1] == [StartList(), Pause(0.8), StartList()]


@pytest.mark.parametrize("event", [Seen("1"), WatchEnded(1, 0), Paused()])
def test_events_out_of_turn_are_bugs(event: Event) -> None:
    with pytest.raises(ProtocolError, match="while listing"):
        step(State(), event)


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_is_bounded(failures: int, jitter: float) -> None:
    assert 0.4 <= backoff_s(failures, jitter) <= BACKOFF_CAP_S


@given(st.data())
def test_whatever_happens_there_is_always_exactly_one_action_under_way(data: st.DataObject) -> None:
    state, running = start()
    listed = False
    for _ in range(data.draw(st.integers(0, 30))):
        failed = st.builds(Failed, gone=st.booleans(), jitter=st.floats(0, 0.99))
        choices: st.SearchStrategy[Event]
        match running:
            case StartList():
                choices = failed | st.just(Listed("1"))
            case StartWatch():
                assert listed
                choices = failed | st.builds(Seen, st.just("2")) | st.builds(WatchEnded, st.floats(0, 9), st.just(0.0))
            case Pause():
                choices = st.just(Paused())
        event = data.draw(choices)
        listed |= isinstance(event, Listed)
        state, following = step(state, event)
        assert (following is None) == isinstance(event, Seen)
        assert state.failures >= 0
        running = running if following is None else following
        if isinstance(event, Failed) and not event.gone:
            assert isinstance(running, Pause)
