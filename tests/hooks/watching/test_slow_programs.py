"""The temporary refusal of filter programs that have repeatedly exceeded their time limit."""

from wharfinger.hooks.watching.slow_programs import KEPT, LATE_IN_A_ROW, REFUSED_S, SlowPrograms

SLOW = ("package", "range(1e12)")


def test_repeatedly_late_program_is_refused_temporarily_then_tried_once() -> None:
    programs = SlowPrograms()
    for turn in range(LATE_IN_A_ROW):
        assert not programs.refused(SLOW, turn)
        programs.late(SLOW, turn)
    until = LATE_IN_A_ROW - 1 + REFUSED_S
    assert programs.refused(SLOW, until - 0.1)
    assert not programs.refused(SLOW, until)
    programs.late(SLOW, until)
    assert programs.refused(SLOW, until + REFUSED_S - 0.1)


def test_program_that_ends_in_time_resets_its_count() -> None:
    programs = SlowPrograms()
    for _ in range(LATE_IN_A_ROW):
        programs.late(SLOW, 0.0)
    programs.in_time(SLOW)
    programs.in_time(SLOW)
    programs.late(SLOW, 1.0)
    assert not programs.refused(SLOW, 1.0)


def test_same_program_of_another_owner_is_not_refused() -> None:
    programs = SlowPrograms()
    for _ in range(LATE_IN_A_ROW):
        programs.late(SLOW, 0.0)
    assert programs.refused(SLOW, 0.0)
    assert not programs.refused(("other", SLOW[1]), 0.0)


def test_oldest_late_program_is_forgotten() -> None:
    programs = SlowPrograms()
    for _ in range(LATE_IN_A_ROW):
        programs.late(SLOW, 0.0)
    for number in range(KEPT):
        assert programs.refused(SLOW, 0.0)
        programs.late(("package", str(number)), 0.0)
    assert not programs.refused(SLOW, 0.0)
