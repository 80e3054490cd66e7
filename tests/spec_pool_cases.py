"""Tests that cover the cases of the claim scheduler that spec/schedulers describes (C.9, C.12). Further tests show that our
claim scheduler does not have the weaknesses of the one in the specification.

The notation is that of `tests/spec_cases.py`, and the order is that of the specification.
"""

from typing import Final

from tests.spec_cases import Coverage, Elsewhere

_MACHINE: Final = "tests/pools/claims/test_machine.py::"
_SCHEDULER: Final = "tests/pools/claims/test_scheduler.py::"
_RULES: Final = "tests/pools/claims/test_machine_rules.py::TestClaimsMachine"
_SCHEDULES: Final = "tests/pools/claims/test_schedules.py::"
_STRESS: Final = "tests/pools/claims/test_stress.py::"
_ONE_THREAD: Final = "all steps are taken in one thread; random orders of events are tested instead"
_PODS: Final = "tests/pools/pods/"
_NO_DEMAND: Final = "the status has no demand: the sizing of the pool reads it from the scheduler's snapshot"

READY_QUEUE: Final[dict[str, Coverage]] = {
    "FIFO": _MACHINE + "test_members_are_handed_out_in_the_order_in_which_they_became_idle",
    "dedup by name": _MACHINE + "test_a_member_that_is_seen_again_keeps_its_place_and_is_there_once",
    "skip protected": _MACHINE + "test_a_protected_member_is_not_admitted_and_leaves_if_it_becomes_so",
    "skip reserved on admit": _MACHINE + "test_a_member_under_claim_is_reserved_whatever_the_cache_shows",
    "pop skips reserved heads": Elsewhere(
        "a reserved member is never in the queue",
        (_RULES, _MACHINE + "test_a_member_under_claim_is_reserved_whatever_the_cache_shows"),
    ),
    "pop reserves atomically": _MACHINE + "test_a_member_under_claim_is_reserved_whatever_the_cache_shows",
    "empty pop": _MACHINE + "test_an_empty_pool_hands_nothing_out",
    "stale (missing) pods discarded": _MACHINE + "test_evicted_members_leave_the_order_of_the_others_unchanged",
    "stale keeps FIFO": _MACHINE + "test_evicted_members_leave_the_order_of_the_others_unchanged",
    "phase mismatch discarded": _MACHINE + "test_a_member_that_is_no_longer_idle_is_evicted",
    "concurrent 500/16": Elsewhere(_ONE_THREAD, (_RULES,)),
    "producer/consumer": Elsewhere(_ONE_THREAD, (_RULES,)),
    "heavy dedup": _MACHINE + "test_many_sightings_of_few_members",
}

RESERVATIONS: Final[dict[str, Coverage]] = {
    "reserve/release": _MACHINE + "test_after_another_failure_a_member_is_free_at_once_and_last_in_the_order",
    "empty name": Elsewhere("a backend cannot create a member without a uid", (_RULES,)),
    "TTL expiry, GC only on sweep": Elsewhere(
        "reservations end by observation and not by time",
        (_MACHINE + "test_a_claimed_member_is_reserved_until_the_cache_shows_the_claim",),
    ),
    "re-reserve refreshes": Elsewhere("a reserved member is not claimed again", (_RULES,)),
    "sweep leaves fresh": Elsewhere(
        "nothing is swept", (_MACHINE + "test_a_member_in_conflict_is_reserved_until_the_cache_shows_a_newer_version",)
    ),
    "3 concurrency tests": Elsewhere(_ONE_THREAD, (_RULES,)),
}

SCHEDULER: Final[dict[str, Coverage]] = {
    "immediate dispatch": _SCHEDULER + "test_an_idle_member_is_claimed_at_once",
    "FIFO order": _SCHEDULER + "test_requests_are_served_in_their_order",
    "protected skipped": _SCHEDULER + "test_a_protected_member_is_passed_over",
    "retriable conflict retries": (
        _SCHEDULER + "test_after_a_conflict_the_request_gets_the_next_member_and_the_first_stays_reserved"
    ),
    "hard error releases": _SCHEDULER + "test_another_failure_is_answered_and_releases_the_member",
    "reservation prevents double dispatch": _SCHEDULER + "test_a_slow_cache_hands_no_member_out_twice",
    "100 pods/500 requests": _SCHEDULER + "test_many_more_requests_than_members",
    "exhaustion waits for idle": _SCHEDULER + "test_a_request_waits_for_a_member_to_become_idle",
    "expired ctx": _SCHEDULER + "test_a_cancelled_caller_leaves_no_member_claimed",
    "expired deadline": _SCHEDULER + "test_a_deadline_ends_a_wait",
    "shutdown drains pending": _SCHEDULER + "test_shutdown_answers_all_that_wait_and_lets_claims_finish",
    "re-enqueue on full channel": Elsewhere(
        "a request that returns to the queue keeps its place, whether the queue is full or not",
        (_RULES, _SCHEDULER + "test_a_full_queue_refuses_requests"),
    ),
    "NotifyIdle never blocks": _SCHEDULER + "test_notifying_never_blocks",
    "Snapshot": "tests/pools/claims/test_metrics.py::test_a_snapshot_counts_members_and_requests",
    "status-write decision table": Elsewhere(
        _NO_DEMAND, (_PODS + "test_sizing_machine.py::test_waiting_claims_add_to_the_size_only_once",)
    ),
    "status patch": _PODS + "test_pool_status.py::test_the_status_of_a_pool_of_the_desired_size",
}

STRESS: Final[dict[str, Coverage]] = {
    "2000/500": _STRESS + "test_two_thousand_requests_for_five_hundred_members",
    "conflict injection 600/200": _SCHEDULER + "test_a_storm_of_requests_with_conflicts_and_a_shutdown",
    "storm then Shutdown": _STRESS + "test_a_shutdown_answers_all_concurrent_callers",
    "concurrent enqueue and shutdown": _STRESS + "test_a_shutdown_answers_all_concurrent_callers",
    "churn 800/400 with 200 deletions": _STRESS + "test_churn_with_deletions",
}

MUST_REPRODUCE: Final[dict[str, Coverage]] = {
    "no request is left unanswered": (
        _RULES,
        _SCHEDULES + "test_every_accepted_request_is_answered_once_whatever_happens",
        _STRESS + "test_a_shutdown_answers_all_concurrent_callers",
        _SCHEDULER + "test_cancelling_the_service_answers_everybody",
        _SCHEDULER + "test_a_bug_of_a_backend_answers_everybody_and_is_raised",
    ),
    "no pod is given to two requests": (
        _RULES,
        _SCHEDULES + "test_every_accepted_request_is_answered_once_whatever_happens",
        _STRESS + "test_churn_with_deletions",
    ),
    "FIFO under retriable conflicts": _SCHEDULER + "test_a_conflict_puts_the_request_before_all_later_ones",
    "TTL shorter than CAS latency": _SCHEDULER + "test_a_claim_slower_than_any_timer_keeps_its_member",
    "deleted and recreated under the same name": (
        _SCHEDULER + "test_a_recreated_member_with_the_same_name_is_another_member"
    ),
    "caller gone after success": (
        _SCHEDULER + "test_a_caller_cancelled_in_the_moment_of_success_leaves_no_member_claimed",
        _SCHEDULES + "test_every_accepted_request_is_answered_once_whatever_happens",
    ),
    "autoscaler anchoring": "tests/pools/interpreters/test_pool.py::test_no_more_workers_are_forked_than_requested",
}

POOLS: Final[dict[str, dict[str, Coverage]]] = {
    "pool: ready queue": READY_QUEUE,
    "pool: reservations": RESERVATIONS,
    "pool: scheduler": SCHEDULER,
    "pool: stress": STRESS,
    "pool: must reproduce": MUST_REPRODUCE,
}

WEAKNESSES: Final[dict[int, tuple[str, Coverage]]] = {
    1: ("enqueue after shutdown; cancellation does not stop", (
        _SCHEDULER + "test_shutdown_answers_all_that_wait_and_lets_claims_finish",
        _SCHEDULER + "test_cancelling_the_service_answers_everybody",
    )),
    2: ("demand is counted late, parked requests are invisible", (
        _SCHEDULER + "test_a_request_waits_for_a_member_to_become_idle"
    )),
    3: ("timers stand in for observation", _SCHEDULER + "test_a_slow_cache_hands_no_member_out_twice"),
    4: ("a reservation expires before its claim", _SCHEDULER + "test_a_claim_slower_than_any_timer_keeps_its_member"),
    5: ("conflicts go to the tail, without a cap", (
        _SCHEDULER + "test_a_conflict_puts_the_request_before_all_later_ones",
        _SCHEDULER + "test_a_request_is_answered_after_the_maximum_number_of_conflicts",
    )),
    6: ("waiting requests hold members", (
        _SCHEDULER + "test_claims_never_exceed_the_limit_and_waiting_claims_hold_no_member"
    )),
    7: ("reservations by name", _SCHEDULER + "test_a_recreated_member_with_the_same_name_is_another_member"),
    8: ("shutdown forgets claims, and departed callers their members", (
        _SCHEDULER + "test_shutdown_does_not_wait_for_ever",
        _SCHEDULER + "test_a_deadline_during_a_claim_is_kept_and_the_member_recycled",
    )),
    9: ("a task for each notification, a list for each refresh, deleted members are retained", (
        _SCHEDULER + "test_notifying_never_blocks",
        _SCHEDULES + "test_a_day_of_churn_leaves_no_state",
    )),
    10: ("overlapping timers", _SCHEDULER + "test_a_deadline_ends_a_wait"),
    11: ("no fairness between callers of one pool; latency ends at the start of a claim", (
        "tests/pools/claims/test_metrics.py::test_latencies_are_measured_to_the_first_claim_and_to_its_success"
    )),
    12: ("a result may block the loop", _SCHEDULER + "test_cancelling_the_service_answers_everybody"),
}  # fmt: skip
