"""The budget of work for one check: all of it may be used, and no more."""

import pytest

from wharfinger.formats.schemas.work import Work, WorkError


def test_work_up_to_the_limit_may_be_spent() -> None:
    work = Work(3)
    work.spend(2)
    work.spend(0)
    work.spend(1)
    with pytest.raises(WorkError):
        work.spend(1)
