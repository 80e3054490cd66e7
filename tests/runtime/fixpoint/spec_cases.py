"""Tests that cover the cases of the reference, which is the fixpoint scheduler that spec/schedulers §A describes (cases: §A.10).

Each key of the tables is the name that the reference gives a case. The variants of a case are the parameters of its test. As in
`tests/spec_cases.py`, each value lists the tests that cover the case, or is an :class:`Elsewhere` if this project intentionally
differs. `test_spec_table.py` checks that these tests exist.
"""

from typing import Final

from tests.spec_cases import Coverage, Elsewhere

_SCHEDULE: Final = "tests/runtime/fixpoint/test_spec_schedule.py::"
_ACCOUNTING: Final = "tests/runtime/fixpoint/test_spec_accounting.py::"
_RECOVERY: Final = "tests/runtime/fixpoint/test_spec_recovery.py::"

SCHEDULE: Final[dict[str, Coverage]] = {
    "FailedBlockerSets": (
        _SCHEDULE + "test_an_equal_failed_set_does_not_change_the_lists_of_readers",
        _SCHEDULE + "test_a_different_failed_set_changes_the_lists_of_readers",
    ),
    "FailedReplacementPreservesOtherConsumers": _SCHEDULE + "test_a_failed_replacement_preserves_other_consumers",
    "FailedBlockerWidthChanges": _SCHEDULE + "test_failed_sets_may_grow_and_shrink",
    "RedispatchLimit": (
        _SCHEDULE + "test_a_node_is_exhausted_after_33_dispatches",
        _SCHEDULE + "test_the_redispatch_limit_applies_to_endless_sweeps",
    ),
    "RedispatchBudgetAllowsConvergence": _SCHEDULE + "test_the_redispatch_budget_allows_convergence",
    "LinearChainReadyPropagation": _SCHEDULE + "test_a_linear_chain_becomes_ready",
    "Diamond": _SCHEDULE + "test_the_join_of_a_diamond_runs_after_both_arms",
    "DanglingChainCascadeFails": _SCHEDULE + "test_a_dangling_chain_fails_from_its_leaf_on",
    "ParkThenArrivalWake": _SCHEDULE + "test_a_node_parked_on_an_absent_id_is_woken_by_its_arrival",
    "LostWakeupRecheck": _SCHEDULE + "test_a_wakeup_between_look_and_parking_is_not_lost",
    "TransitiveBlockCompareOrderCascades": (
        _SCHEDULE + "test_the_verdict_of_transitive_blocks_does_not_depend_on_the_order_of_ids"
    ),
    "CrossKindCycleForceDrains": _SCHEDULE + "test_a_cycle_is_ended_by_force_and_both_members_fail",
    "DrainRerunReexpandsOnArrival": _SCHEDULE + "test_a_sweep_expands_again_after_an_arrival",
    "DrainRerunTerminatesWithoutArrival": _SCHEDULE + "test_no_sweep_without_an_arrival",
    "DanglingChainRunCountBounded": _SCHEDULE + "test_the_number_of_runs_of_a_dangling_chain_is_bounded",
    "Redispatch_ContentBudget": _SCHEDULE + "test_changes_of_content_are_charged_whatever_the_outcomes",
}

ACCOUNTING: Final[dict[str, Coverage]] = {
    "SelectorChain": _ACCOUNTING + "test_every_stage_of_a_selector_chain_is_emitted",
    "QueueCauses": _ACCOUNTING + "test_a_change_of_content_on_top_of_any_cause_costs_one_charge_and_no_run",
    "BlockedDependencyRetries": _ACCOUNTING + "test_retries_of_a_blocked_node_are_free",
    "SlotWaitPreservesContent": (
        _ACCOUNTING + "test_an_arrival_while_a_body_waits_for_its_slot_is_a_second_run_and_one_charge"
    ),
    "EmitBeforeBlockCancellation": Elsewhere(
        "a blocked body cannot publish, so such bodies are judged and end by themselves; a cancellation stops them too",
        (_ACCOUNTING + "test_blocked_bodies_publish_nothing_and_are_judged",),
    ),
    "TerminalEmissionFeedback": (
        _ACCOUNTING + "test_nodes_that_feed_each_other_are_exhausted_and_the_engine_converges"
    ),
    "RunnableUpgradeAtCap": _ACCOUNTING + "test_a_queued_run_is_upgraded_only_within_the_budget",
    "Outcome_Compatibility": Elsewhere(
        "outcomes are types, not numbers that may be stored",
        (_ACCOUNTING + "test_each_outcome_has_its_meaning",),
    ),
    "ContentAndStatusCoalesce": _ACCOUNTING + "test_changes_of_content_and_status_share_one_run",
    "Progress_RunnableUpgrade": _ACCOUNTING + "test_progress_upgrades_a_free_queued_run",
    "ChargedEpisodeRearms": _ACCOUNTING + "test_further_causes_after_a_charged_run_are_charged",
    "RunnableUpgradeExecution": _ACCOUNTING + "test_an_upgraded_run_is_one_run",
    "ContentPreservesConservativeRetry": Elsewhere(
        "versions show exactly which ids changed during a run, so there are no precautionary retries",
        (_ACCOUNTING + "test_a_change_of_content_during_a_run_does_not_hide_its_failure",),
    ),
}

RECOVERY: Final[dict[str, Coverage]] = {
    "DependencyFailureRecovery": (
        _RECOVERY + "test_a_failed_dependent_recovers_after_its_dependency_ends",
        _RECOVERY + "test_a_failed_dependent_recovers_if_its_dependency_ends_during_the_report",
        _RECOVERY + "test_a_failure_because_of_absent_data_recovers_when_they_arrive",
        _RECOVERY + "test_a_permanent_failure_is_not_retried",
    ),
    "RunningWakeAndReplacement": (
        _RECOVERY + "test_a_wake_by_an_id_no_longer_failed_for_causes_no_run",
        _RECOVERY + "test_a_wake_by_the_failed_dependency_is_followed_in_both_orders",
    ),
    "MultiHopRecovery": _RECOVERY + "test_recovery_passes_through_several_hops",
    "Recovery RedispatchLimit": _RECOVERY + "test_recovery_is_charged",
}

SUITES: Final = {"schedule_test": SCHEDULE, "schedule_accounting_test": ACCOUNTING, "recovery_test": RECOVERY}
