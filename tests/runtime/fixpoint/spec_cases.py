"""Which test covers which case of the fixpoint scheduler that this engine is held to (spec/schedulers §A.10).

A case is named as the reference names it, its variants by the parameters of its test. As in `tests/spec_cases.py`, its value
are the tests that tell it, or :class:`Elsewhere` where it is decided otherwise on purpose. `test_spec_table.py` holds that
they exist.
"""

from typing import Final

from tests.spec_cases import Coverage, Elsewhere

_SCHEDULE: Final = "tests/runtime/fixpoint/test_spec_schedule.py::"
_ACCOUNTING: Final = "tests/runtime/fixpoint/test_spec_accounting.py::"
_RECOVERY: Final = "tests/runtime/fixpoint/test_spec_recovery.py::"

SCHEDULE: Final[dict[str, Coverage]] = {
    "FailedBlockerSets": (
        _SCHEDULE + "test_failed_sets_that_are_the_same_change_no_ones_books",
        _SCHEDULE + "test_failed_sets_that_differ_are_followed",
    ),
    "FailedReplacementPreservesOtherConsumers": _SCHEDULE + "test_a_failed_replacement_preserves_other_consumers",
    "FailedBlockerWidthChanges": _SCHEDULE + "test_failed_sets_may_grow_and_shrink",
    "RedispatchLimit": (
        _SCHEDULE + "test_the_redispatch_limit_is_an_error_that_names_the_node_after_33_dispatches",
        _SCHEDULE + "test_the_redispatch_limit_holds_for_sweeps_that_never_come_to_an_end",
    ),
    "RedispatchBudgetAllowsConvergence": _SCHEDULE + "test_the_redispatch_budget_allows_convergence",
    "LinearChainReadyPropagation": _SCHEDULE + "test_a_linear_chain_becomes_ready",
    "Diamond": _SCHEDULE + "test_the_join_of_a_diamond_runs_after_both_arms",
    "DanglingChainCascadeFails": _SCHEDULE + "test_a_dangling_chain_fails_from_its_leaf_on",
    "ParkThenArrivalWake": _SCHEDULE + "test_one_parked_on_what_is_absent_is_woken_by_its_arrival",
    "LostWakeupRecheck": _SCHEDULE + "test_a_wakeup_between_look_and_parking_is_not_lost",
    "TransitiveBlockCompareOrderCascades": (
        _SCHEDULE + "test_the_verdict_of_transitive_blocks_does_not_depend_on_the_order_of_ids"
    ),
    "CrossKindCycleForceDrains": _SCHEDULE + "test_a_cycle_is_ended_by_force_and_both_members_fail",
    "DrainRerunReexpandsOnArrival": _SCHEDULE + "test_a_sweep_expands_again_after_an_arrival",
    "DrainRerunTerminatesWithoutArrival": _SCHEDULE + "test_no_sweep_without_an_arrival",
    "DanglingChainRunCountBounded": _SCHEDULE + "test_the_runs_of_a_dangling_chain_are_bounded",
    "Redispatch_ContentBudget": _SCHEDULE + "test_the_content_budget",
}

ACCOUNTING: Final[dict[str, Coverage]] = {
    "SelectorChain": _ACCOUNTING + "test_every_stage_of_a_selector_chain_is_emitted",
    "QueueCauses": _ACCOUNTING + "test_a_change_of_content_on_top_of_any_cause_costs_one_charge_and_no_run",
    "BlockedDependencyRetries": _ACCOUNTING + "test_retries_of_a_blocked_node_are_free",
    "SlotWaitPreservesContent": (
        _ACCOUNTING + "test_an_arrival_while_a_body_waits_for_its_slot_is_a_second_run_and_one_charge"
    ),
    "EmitBeforeBlockCancellation": Elsewhere(
        "what blocks has no way to publish, so such bodies are judged and end by themselves; cancelling stops them too",
        (_ACCOUNTING + "test_bodies_that_would_publish_and_block_cannot_and_are_judged",),
    ),
    "TerminalEmissionFeedback": (
        _ACCOUNTING + "test_two_that_feed_each_other_are_stopped_by_the_budget_and_everything_drains"
    ),
    "RunnableUpgradeAtCap": _ACCOUNTING + "test_an_upgrade_of_a_queued_run_at_the_cap",
    "Outcome_Compatibility": Elsewhere(
        "outcomes are types, not numbers that somebody may have stored",
        (_ACCOUNTING + "test_outcomes_are_these_and_mean_what_they_say",),
    ),
    "ContentAndStatusCoalesce": _ACCOUNTING + "test_content_and_status_meet_in_one_run",
    "Progress_RunnableUpgrade": _ACCOUNTING + "test_progress_upgrades_a_run_that_is_queued_for_nothing",
    "ChargedEpisodeRearms": _ACCOUNTING + "test_after_a_charged_run_further_causes_cost_again",
    "RunnableUpgradeExecution": _ACCOUNTING + "test_an_upgraded_run_is_one_run",
    "ContentPreservesConservativeRetry": Elsewhere(
        "versions tell exactly what changed during a run, so nothing is retried in case something had",
        (_ACCOUNTING + "test_a_change_of_content_during_a_run_does_not_hide_what_failed",),
    ),
}

RECOVERY: Final[dict[str, Coverage]] = {
    "DependencyFailureRecovery": (
        _RECOVERY + "test_a_failure_for_a_dependency_recovers_after_it_was_done",
        _RECOVERY + "test_a_failure_for_a_dependency_recovers_while_it_is_being_told",
        _RECOVERY + "test_a_failure_for_data_recovers_when_it_arrives",
        _RECOVERY + "test_a_permanent_failure_stays",
    ),
    "RunningWakeAndReplacement": (
        _RECOVERY + "test_a_wake_and_what_the_run_comes_to",
        _RECOVERY + "test_a_wake_by_what_the_run_failed_for_is_followed_in_both_orders",
    ),
    "MultiHopRecovery": _RECOVERY + "test_recovery_passes_through_several_hops",
    "Recovery RedispatchLimit": _RECOVERY + "test_recovery_is_charged",
}

SUITES: Final = {"schedule_test": SCHEDULE, "schedule_accounting_test": ACCOUNTING, "recovery_test": RECOVERY}
