import pytest

from wharfinger.debug.client.polling import MOST_PAUSE_S, PAUSE_S, Pacer


@pytest.mark.parametrize(
    ("took_s", "most_s", "paused_s"),
    [(0.0, 99.0, PAUSE_S), (0.5, 99.0, 5.0), (60.0, 999.0, MOST_PAUSE_S), (0.5, 2.0, 2.0), (0.5, -1.0, 0.0)],
)
def test_the_pause_grows_with_the_time_of_the_answer(took_s: float, most_s: float, paused_s: float) -> None:
    now_s, pauses = [100.0], list[float]()
    pacer = Pacer(pauses.append, lambda: now_s[0])
    pacer.asked()
    now_s[0] += took_s
    pacer.next(most_s)
    assert pauses == [paused_s]
