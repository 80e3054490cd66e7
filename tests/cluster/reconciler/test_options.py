"""Invalid options of a reconciler, which are refused with a reason."""

from collections.abc import Callable

import pytest

from wharfinger.cluster.reconciler.options import ReconcilerOptions

REFUSED: list[tuple[str, Callable[[], ReconcilerOptions]]] = [
    ("concurrency", lambda: ReconcilerOptions(concurrency=0)),
    ("owner_concurrency", lambda: ReconcilerOptions(owner_concurrency=0)),
    ("round_size", lambda: ReconcilerOptions(round_size=0)),
    ("give_up", lambda: ReconcilerOptions(give_up=0)),
    ("first_retry_s", lambda: ReconcilerOptions(first_retry_s=0)),
    ("operation_s", lambda: ReconcilerOptions(operation_s=0)),
    ("refresh_per_s", lambda: ReconcilerOptions(refresh_per_s=0)),
    ("prune_limit_s", lambda: ReconcilerOptions(prune_limit_s=0)),
    ("round_gap_s", lambda: ReconcilerOptions(round_gap_s=-0.1)),
    ("refresh_s", lambda: ReconcilerOptions(refresh_s=-1)),
    ("prune_s", lambda: ReconcilerOptions(prune_s=-1)),
    ("first_retry_s <= max_retry_s", lambda: ReconcilerOptions(first_retry_s=2, max_retry_s=1)),
    ("max_retry_s <= permanent_retry_s", lambda: ReconcilerOptions(permanent_retry_s=1)),
]


@pytest.mark.parametrize(("said", "make"), REFUSED, ids=[said for said, _ in REFUSED])
def test_invalid_options_are_refused(said: str, make: Callable[[], ReconcilerOptions]) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_zero_disables_gap_refresh_and_prune() -> None:
    options = ReconcilerOptions(round_gap_s=0, refresh_s=0, prune_s=0)
    assert (options.concurrency, options.round_size, options.give_up) == (16, 1000, 5)
