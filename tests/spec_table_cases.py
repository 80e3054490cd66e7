"""Which test covers which case of the tables and the reconciler over them (spec/schedulers D.5, D.8 and D.9).

As in `tests/spec_cases.py`; the names of the cases are those of `tests/spec_names.py`, and `tests/test_spec_cases.py` holds that
none is missing. What is not built because nobody asks for it is :class:`Elsewhere`, with what is asked instead.
"""

from typing import Final

from tests.spec_cases import Coverage, Elsewhere

_TABLES: Final = "tests/cluster/tables/"
_TABLE: Final = _TABLES + "test_table.py::"
_TRANSACTION: Final = _TABLES + "test_transaction.py::"
_SNAPSHOT: Final = _TABLES + "test_snapshot.py::"
_CHANGES: Final = _TABLES + "test_changes.py::"
_RANDOM: Final = _TABLES + "test_model.py::TestTables"
_RECONCILER: Final = "tests/cluster/reconciler/"
_MACHINE: Final = _RECONCILER + "test_machine.py::"
_SERVICE: Final = _RECONCILER + "test_service.py::"
_SCRIPTS: Final = _RECONCILER + "test_scripts.py::"
_RETRIES: Final = _RECONCILER + "test_retries.py::"
_STATUS: Final = _RECONCILER + "test_status.py::"
_WEAK: Final = _RECONCILER + "test_weaknesses.py::"

_NO_PREFIX: Final = "keys are equal or not: nobody asks for those that begin with something, nor for them in an order"

TABLES: Final[dict[str, Coverage]] = {
    "duplicate tables in a transaction": _TRANSACTION + "test_duplicate_tables_in_a_transaction",
    "same pointer panics": _TRANSACTION + "test_the_same_object_is_not_inserted_again",
    "InsertWatch": _TABLE + "test_insert_watch",
    "LowerBound by revision": _SNAPSHOT + "test_lower_bound_by_revision",
    "Prefix": Elsewhere(_NO_PREFIX, (_SNAPSHOT + "test_regression_29324_a_list_matches_exactly",)),
    "Changes": (
        _CHANGES + "test_changes",
        _CHANGES + "test_created_and_deleted_unseen_is_only_the_deletion",
        _CHANGES + "test_deleted_and_created_unseen_is_only_the_row_and_says_so",
        _CHANGES + "test_a_part_is_taken_safely",
        _CHANGES + "test_a_write_reads_what_was_committed",
    ),
    "Observable": _CHANGES + "test_observable",
    "NumObjects": _TABLE + "test_number_of_objects",
    "All": _SNAPSHOT + "test_all",
    "Modify": _TRANSACTION + "test_modify",
    "Modify updates secondary index": _TRANSACTION + "test_modify_updates_a_secondary_index",
    "Revision": _TRANSACTION + "test_revision",
    "Get/List": _SNAPSHOT + "test_get_and_list",
    "Commit/Abort": (
        _TRANSACTION + "test_commit_and_abort",
        _TRANSACTION + "test_a_transaction_that_is_over",
        _TRANSACTION + "test_to_abort_what_is_over_does_not_touch_another_transaction",
    ),
    "CAS/CAD": (_TRANSACTION + "test_compare_and_swap", _TRANSACTION + "test_compare_and_delete"),
    "read after write": _TRANSACTION + "test_read_after_write",
    "Initialization": (_TABLE + "test_initialization", _TABLE + "test_waiting_until_it_is_initialized"),
    "Initialization transitions": (
        _TABLE + "test_initialization_transitions",
        _TABLE + "test_initializers_and_transactions_do_not_undo_each_other",
    ),
    "empty keys": _SNAPSHOT + "test_empty_keys",
    "WriteJSON": Elsewhere(
        "rows are values of the program; what is shown of releases is written by who shows it",
        ("tests/debug/encoding/test_statistics.py::test_it_comes_back",),
    ),
    "nonUniqueKey": _SNAPSHOT + "test_non_unique_keys_do_not_run_into_each_other",
    "name validation": (_TABLE + "test_names", _TABLE + "test_names_that_may_not_be"),
    "acquired info": Elsewhere(
        "nobody waits for a table: a second writer is a mistake, and told as one with the table's name",
        (_TRANSACTION + "test_a_table_has_one_writer",),
    ),
    "Regression_29324": _SNAPSHOT + "test_regression_29324_a_list_matches_exactly",
    "Changes_Watch": (_CHANGES + "test_changes_watch", _CHANGES + "test_who_waits_is_told_that_it_expired"),
    "Prefix_NonUnique": Elsewhere(_NO_PREFIX, (_SNAPSHOT + "test_non_unique_keys_do_not_run_into_each_other",)),
    "WatchSet": _TABLE + "test_watch_set_any_of_several",
    "WatchSet settle": _TABLE + "test_watch_set_settling",
    "WatchSet cancel in settle": _TABLE + "test_watch_set_cancelled_while_settling",
    "Derive": _CHANGES + "test_derive",
    "Fuzz": _RANDOM,
    "Quick": _RANDOM,
    "HTTP x7": Elsewhere(
        "tables are not served: what people ask for is packages, drift and health, and how much there is, as metrics",
        ("tests/runtime/inspection/test_release_metrics.py::test_what_was_applied_is_counted",),
    ),
    "LPM x5": Elsewhere("no row has an address: nothing is looked up by its longest prefix"),
    "part index duplicate keys": _TABLES + "test_contents.py::test_part_index_duplicate_keys",
    "sortable mutex chaos": Elsewhere(
        "one thread, and no await in a transaction: there are no locks to be taken in an order",
        (
            _TRANSACTION + "test_a_table_has_one_writer",
            _TRANSACTION + "test_all_tables_of_a_transaction_change_together",
        ),
    ),
    "radix tree x45": Elsewhere(
        "rows by key are in rpds' hash trie, which has tests of its own; what is ours is the log of versions beside it",
        (
            _TABLES + "test_version_log.py::test_the_compacted_log_has_all_versions_not_ended",
            _TABLES + "test_version_log.py::test_ended_versions_never_far_outnumber_the_others",
            _TABLES + "test_contents.py::test_unchanged_versions_are_shared_between_snapshots",
            _RANDOM,
        ),
    ),
    "script": Elsewhere(
        "tests are written in Python: a language of commands for them would be a second one to learn", (_RANDOM,)
    ),
}

_INCREMENTAL: Final = _SCRIPTS + "test_incremental_and_batching"

RECONCILER: Final[dict[str, Coverage]] = {
    "oracle: the last operations as a multiset": (_INCREMENTAL, _SCRIPTS + "test_the_oracle_finds_what_differs"),
    "script incremental": _INCREMENTAL,
    "script batching": (_INCREMENTAL, _SERVICE + "test_in_batches_deletions_come_first_and_retries_are_single"),
    "script pruning": _SCRIPTS + "test_pruning",
    "script prune_empty": _SCRIPTS + "test_prune_empty",
    "script refresh": _SCRIPTS + "test_refresh",
    "Retries order": (
        _RETRIES + "test_they_come_in_the_order_of_their_times",
        _RETRIES + "test_those_of_one_time_come_in_the_order_of_their_failures",
    ),
    "Retries re-add later": _RETRIES + "test_one_that_fails_again_later_has_its_later_time_only",
    "Retries popped keeps its count": _RETRIES + "test_what_was_popped_keeps_its_count",
    "Retries clear in queue": _RETRIES + "test_cleared_while_it_waits",
    "Retries clear after pop": _RETRIES + "test_cleared_after_it_was_popped",
    "ExponentialBackoff within bounds": _RETRIES + "test_pauses_stay_within_their_bounds",
    "ExponentialBackoff d(1) = 2·d(0)": _RETRIES + "test_pauses_double",
    "StatusString": _STATUS + "test_text",
    "StatusJSON": _STATUS + "test_json",
    "StatusSet": (
        _STATUS + "test_a_set_is_pending_until_it_is_told_otherwise",
        _STATUS + "test_a_set_is_sorted_and_does_not_change",
        _STATUS + "test_all_of_a_set_are_pending_with_one_id",
    ),
    "WaitUntilReconciled revision 0 immediate": _SERVICE + "test_waiting_for_revision_0_is_over_at_once",
    "WaitUntilReconciled blocks": _SERVICE + "test_waiting_for_a_revision_that_is_yet_to_come",
    "WaitUntilReconciled watermark is the failing revision": _SERVICE + "test_the_watermark_is_the_revision_that_fails",
    "WaitUntilReconciled clears after success": _SERVICE + "test_the_watermark_is_the_revision_that_fails",
    "WaitUntilReconciled virtual time": (
        _SERVICE + "test_waiting_for_a_revision_that_is_yet_to_come",
        _SERVICE + "test_waiting_until_settled_ends_when_it_is_given_up",
    ),
    "MultipleReconcilers": _SERVICE + "test_several_reconcilers_of_one_table_do_each_row_once_each",
    "RetryAfterStatusConflict": _SERVICE + "test_the_loser_of_a_race_for_a_row_is_tried_again_and_shows",
    "PerModuleMetrics": _SERVICE + "test_several_reconcilers_of_one_table_do_each_row_once_each",
}

_MATRIX: Final = _MACHINE + "test_what_happens_to_a_row_while_it_is_worked_at"

MUST_REPRODUCE: Final[dict[str, Coverage]] = {
    "all scripts, same history oracle": (
        _INCREMENTAL,
        _SCRIPTS + "test_pruning",
        _SCRIPTS + "test_prune_empty",
        _SCRIPTS + "test_refresh",
    ),
    "retries": (_RETRIES + "test_they_come_in_the_order_of_their_times", _MACHINE + "test_pauses_double_up_to_a_limit"),
    "fuzz with an independent model": (_RANDOM, _RECONCILER + "test_model.py::TestReconcilers"),
    "status-conflict matrix: Pending": _MATRIX,
    "status-conflict matrix: same ID": (_MATRIX, _WEAK + "test_2_a_retry_is_not_lost_to_what_another_reconciler_says"),
    "status-conflict matrix: Error": _MATRIX,
    "status-conflict matrix: Refreshing": (
        _MATRIX,
        _WEAK + "test_3_a_refresh_is_done_once_whatever_another_reconciler_says",
    ),
    "status-conflict matrix: deleted": (
        _MATRIX,
        _MACHINE + "test_a_row_that_comes_again_while_its_delete_runs_is_updated_after_that",
    ),
    "delete failing then re-inserted": _MACHINE + "test_a_row_that_comes_again_cancels_its_failing_delete",
    "round-size boundary": _SERVICE + "test_a_round_takes_so_many_changes",
    "prune never before init": (
        _SCRIPTS + "test_pruning",
        _SERVICE + "test_a_prune_waits_for_whatever_begins_to_fill_the_table_again",
    ),
    "watch-after-commit ordering": (
        _TABLE + "test_who_is_woken_sees_the_new_root",
        _TRANSACTION + "test_commit_then_notify_then_release",
    ),
    "1 M benchmark": Elsewhere(
        "a measurement is no test: `python -m bench --long reconciler` makes a million rows Done, each updated exactly once; "
        "that there is nothing per row but the row is tested",
        (_SERVICE + "test_there_is_no_task_for_a_row",),
    ),
}

WEAKNESSES: Final[dict[int, tuple[str, tuple[str, ...]]]] = {
    1: ("operations run one after another", (_WEAK + "test_1_a_slow_target_blocks_nothing_else",)),
    2: (
        "a retry is lost to another reconciler's status",
        (_WEAK + "test_2_a_retry_is_not_lost_to_what_another_reconciler_says",),
    ),
    3: (
        "a refresh is done twice",
        (_WEAK + "test_3_a_refresh_is_done_once_whatever_another_reconciler_says",),
    ),
    4: (
        "who waits for a revision that was a deletion hangs",
        (
            _WEAK + "test_4_a_deletion_from_before_the_start_does_not_hang_who_waits",
            _CHANGES + "test_what_was_taken_to_the_end_has_the_tables_revision",
        ),
    ),
    5: (
        "retries starve",
        (
            _WEAK + "test_5_retries_do_not_starve_where_changes_fill_every_round",
            _SERVICE + "test_retries_have_their_share_while_changes_never_end",
        ),
    ),
    6: (
        "no jitter, no permanent errors, no end of attempts, no deadline",
        (
            _WEAK + "test_6_pauses_are_jittered_and_what_only_a_change_helps_waits_for_that",
            _WEAK + "test_6_an_operation_has_a_deadline",
            _SERVICE + "test_waiting_until_settled_ends_when_it_is_given_up",
        ),
    ),
    7: (
        "a row that was replaced looks updated",
        (
            _WEAK + "test_7_a_row_that_was_replaced_says_so",
            _WEAK + "test_7_it_says_so_until_it_is_done",
            "tests/cluster/apply/test_operations.py::test_an_object_is_read_if_the_seen_state_may_be_outdated",
        ),
    ),
    8: (
        "a prune that fails waits, one that came too early is lost",
        (
            _WEAK + "test_8_a_prune_that_fails_is_tried_again_soon_and_one_before_the_table_is_filled_is_not_lost",
            _RECONCILER + "test_pruning.py::test_a_failed_prune_is_retried_soon",
        ),
    ),
    9: ("an outcome is a change of the table", (_WEAK + "test_9_an_outcome_is_no_change_of_the_table",)),
    10: ("the order of outcomes is random", (_WEAK + "test_10_the_same_events_have_the_same_order",)),
    11: (
        "a comparison that fails wakes watches",
        (_TRANSACTION + "test_a_comparison_that_fails_leaves_no_trace",),
    ),
    12: (
        "a tracker that hangs keeps all deletions, and nobody knows which",
        (
            _CHANGES + "test_who_falls_too_far_behind_is_expired_and_named",
            _SERVICE + "test_deletions_that_were_forgotten_are_found_by_comparing",
        ),
    ),
    13: (
        "unique values are not",
        (
            _TRANSACTION + "test_unique_secondary_keys",
            "tests/cluster/releases/test_preflight.py::test_an_object_has_one_owner_before_it_is_written",
        ),
    ),
    14: (
        "age is taken from revisions",
        (
            _WEAK + "test_14_what_was_done_lately_is_young_however_old_its_row",
            _MACHINE + "test_what_is_old_is_refreshed_whatever_its_revision",
        ),
    ),
    15: ("health has no history of an object", (_WEAK + "test_15_what_fails_tells_its_history",)),
    16: ("what derives dies of its first error", (_CHANGES + "test_derive",)),
}
