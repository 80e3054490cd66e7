"""The schedule of a repository's scans: single cases, and random sequences of events."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.repositories.package_scan import Interest
from wharfinger.runtime.repositories.scan_plan import (
    FIRST_PAUSE_S,
    MAX_PAUSE_S,
    Scan,
    Scans,
    Wait,
    plan_scan,
    scan_failed,
    scanned,
)

WEB = {"web": Interest(versions=frozenset({"1.0.0"}))}
HOUR = 3600.0


def first() -> Scans:
    plan = plan_scan(Scans(), "source", "", WEB, 0.0)
    assert plan == Scan(WEB, whole=True, full=False)
    return scanned(Scans(), "source", "", plan, HOUR, 1.0)


def test_a_repository_is_scanned_again_after_its_interval() -> None:
    scans = first()
    assert plan_scan(scans, "source", "", WEB, 2.0) == Wait(HOUR - 1.0)
    assert plan_scan(scans, "source", "", WEB, HOUR + 1.0) == Scan(WEB, whole=True, full=False)


def test_a_changed_source_or_login_causes_a_scan() -> None:
    assert plan_scan(first(), "other", "", WEB, 2.0) == Scan(WEB, whole=True, full=False)


def test_a_request_reads_all_details_again_once() -> None:
    scans = first()
    plan = plan_scan(scans, "source", "now", WEB, 2.0)
    assert plan == Scan(WEB, whole=True, full=True)
    assert isinstance(plan, Scan)
    assert isinstance(plan_scan(scanned(scans, "source", "now", plan, HOUR, 2.0), "source", "now", WEB, 3.0), Wait)


def test_a_scan_after_a_failed_request_reads_all_details() -> None:
    failed = scan_failed(first(), "source", "now", HOUR, 2.0)
    again = plan_scan(failed, "source", "now", WEB, failed.due_s)
    assert again == Scan(WEB, whole=True, full=True)
    assert isinstance(again, Scan)
    assert not scanned(failed, "source", "now", again, HOUR, 3.0).full


def test_a_new_package_or_tag_is_scanned_alone_within_the_interval() -> None:
    scans = first()
    both = {**WEB, "db": Interest()}
    plan = plan_scan(scans, "source", "", both, 2.0)
    assert plan == Scan({"db": Interest()}, whole=False, full=False)
    assert isinstance(plan, Scan)
    assert plan_scan(scanned(scans, "source", "", plan, HOUR, 3.0), "source", "", both, 3.0) == Wait(HOUR - 2.0)
    moved = {"web": Interest(channels=frozenset({"stable"}))}
    assert plan_scan(scans, "source", "", moved, 2.0) == Scan(moved, whole=False, full=False)


def test_pauses_after_failures_grow_up_to_the_interval() -> None:
    scans, pauses = Scans(), []
    for _ in range(9):
        scans = scan_failed(scans, "source", "", HOUR, 0.0)
        pauses.append(scans.due_s)
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == MAX_PAUSE_S
    assert scan_failed(scans, "source", "", 15.0, 0.0).due_s == 15.0
    assert plan_scan(scans, "source", "", {**WEB, "db": Interest()}, 1.0) == Wait(MAX_PAUSE_S - 1.0)


EVENTS = st.sampled_from(("ok", "fails", "edit", "request", "follow"))


@given(st.lists(st.tuples(EVENTS, st.floats(0, 2 * HOUR)), max_size=30))
def test_every_repository_is_scanned_within_its_interval(life: list[tuple[str, float]]) -> None:
    """The next scan is always due within the interval. After a successful scan, every used package has been scanned."""
    scans, of, requested, wanted, now_s = Scans(), "0", "", dict(WEB), 0.0
    for number, (event, pause_s) in enumerate(life):
        now_s += pause_s
        if event == "edit":
            of = str(number)
        elif event == "request":
            requested = str(number)
        elif event == "follow":
            wanted[f"p{number}"] = Interest()
        plan = plan_scan(scans, of, requested, wanted, now_s)
        if isinstance(plan, Wait):
            assert 0 < plan.delay_s <= HOUR + 1e-6  # a difference of two times is rounded
            assert scans.failures or scans.done == wanted
        elif event == "fails":
            scans = scan_failed(scans, of, requested, HOUR, now_s)
        else:
            scans = scanned(scans, of, requested, plan, HOUR, now_s)
            assert scans.done == wanted
