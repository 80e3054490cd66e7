"""Tests that cover the cases of the tables and their reconciler (spec/schedulers D.5, D.8 and D.9).

The notation is that of `tests/spec_cases.py`. The names of the cases are those of `tests/spec_names.py`, and
`tests/test_spec_cases.py` checks that no name is missing. The case of a feature that does not exist here is an
:class:`Elsewhere` with the reason.
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

_NO_PREFIX: Final = "keys are only compared for equality: queries by prefix and ordered queries are not needed"

TABLES: Final[dict[str, Coverage]] = {
    "duplicate tables in a transaction": _TRANSACTION + "test_a_table_may_be_named_twice_in_a_transaction",
    "same pointer panics": _TRANSACTION + "test_the_same_object_is_not_inserted_again",
    "InsertWatch": _TABLE + "test_a_watch_on_an_inserted_row_fires_for_that_row_only",
    "LowerBound by revision": _SNAPSHOT + "test_a_snapshot_lists_entries_since_a_revision",
    "Prefix": Elsewhere(_NO_PREFIX, (_SNAPSHOT + "test_regression_29324_a_list_matches_exactly",)),
    "Changes": (
        _CHANGES + "test_changes_are_read_by_revision",
        _CHANGES + "test_a_row_created_and_deleted_unread_is_one_deletion",
        _CHANGES + "test_a_row_deleted_and_created_unread_is_one_row_with_a_new_beginning",
        _CHANGES + "test_changes_can_be_taken_in_parts",
        _CHANGES + "test_readers_see_only_committed_changes",
    ),
    "Observable": _CHANGES + "test_a_follower_of_changes_mirrors_the_table",
    "NumObjects": _TABLE + "test_the_number_of_rows_follows_the_changes",
    "All": _SNAPSHOT + "test_all_entries_are_in_the_order_of_revisions",
    "Modify": _TRANSACTION + "test_modify_merges_with_the_existing_row",
    "Modify updates secondary index": _TRANSACTION + "test_modify_updates_a_secondary_index",
    "Revision": _TRANSACTION + "test_the_revision_advances_within_the_transaction",
    "Get/List": _SNAPSHOT + "test_get_returns_the_entry_of_a_key",
    "Commit/Abort": (
        _TRANSACTION + "test_commit_applies_and_abort_discards_changes",
        _TRANSACTION + "test_an_ended_transaction_is_refused",
        _TRANSACTION + "test_aborting_an_ended_transaction_does_not_affect_another",
    ),
    "CAS/CAD": (
        _TRANSACTION + "test_compare_and_swap_requires_the_revision",
        _TRANSACTION + "test_compare_and_delete_requires_the_revision",
    ),
    "read after write": _TRANSACTION + "test_a_transaction_reads_its_own_writes",
    "Initialization": (
        _TABLE + "test_a_table_is_initialized_when_all_initializers_are_done",
        _TABLE + "test_a_wait_for_initialization_ends_with_the_last_initializer",
    ),
    "Initialization transitions": (
        _TABLE + "test_an_initializer_counts_once_and_a_later_one_uninitializes",
        _TABLE + "test_initializers_and_transactions_are_independent",
    ),
    "empty keys": _SNAPSHOT + "test_empty_keys_and_values_are_allowed",
    "WriteJSON": Elsewhere(
        "rows are values of the program; the commands that show releases write them as JSON",
        ("tests/debug/encoding/test_statistics.py::test_statistics_survive_a_round_trip",),
    ),
    "nonUniqueKey": _SNAPSHOT + "test_non_unique_keys_are_not_concatenated",
    "name validation": (_TABLE + "test_valid_names_are_accepted", _TABLE + "test_invalid_names_are_refused"),
    "acquired info": Elsewhere(
        "no writer waits for a table: a second writer is an error, which names the table",
        (_TRANSACTION + "test_a_table_has_one_writer_at_a_time",),
    ),
    "Regression_29324": _SNAPSHOT + "test_regression_29324_a_list_matches_exactly",
    "Changes_Watch": (
        _CHANGES + "test_a_waiting_reader_is_woken_by_changes",
        _CHANGES + "test_a_waiting_reader_is_woken_when_it_expires",
    ),
    "Prefix_NonUnique": Elsewhere(_NO_PREFIX, (_SNAPSHOT + "test_non_unique_keys_are_not_concatenated",)),
    "WatchSet": _TABLE + "test_a_watch_set_waits_for_any_of_several_watches",
    "WatchSet settle": _TABLE + "test_a_watch_set_collects_watches_within_the_settle_time",
    "WatchSet cancel in settle": _TABLE + "test_a_cancelled_watch_set_leaves_watches_usable",
    "Derive": _CHANGES + "test_a_derived_table_skips_rows_that_fail",
    "Fuzz": _RANDOM,
    "Quick": _RANDOM,
    "HTTP x7": Elsewhere(
        "tables are not served: packages, drift and health are, and their numbers are metrics",
        ("tests/runtime/inspection/test_release_metrics.py::test_renders_and_applies_are_counted",),
    ),
    "LPM x5": Elsewhere("no row has an address, so there are no queries by longest prefix"),
    "part index duplicate keys": _TABLES + "test_contents.py::test_an_index_value_of_many_rows_is_compacted",
    "sortable mutex chaos": Elsewhere(
        "there is one thread, and no await in a transaction, so there are no locks",
        (
            _TRANSACTION + "test_a_table_has_one_writer_at_a_time",
            _TRANSACTION + "test_all_tables_of_a_transaction_change_together",
        ),
    ),
    "radix tree x45": Elsewhere(
        "rows by key are in rpds' hash trie, which has tests of its own; only the version log is our own",
        (
            _TABLES + "test_version_log.py::test_the_compacted_log_has_all_versions_not_ended",
            _TABLES + "test_version_log.py::test_ended_versions_never_far_outnumber_the_others",
            _TABLES + "test_contents.py::test_unchanged_versions_are_shared_between_snapshots",
            _RANDOM,
        ),
    ),
    "script": Elsewhere("tests are written in Python, without a command language of their own", (_RANDOM,)),
}

_INCREMENTAL: Final = _SCRIPTS + "test_incremental_and_batched_targets_follow_the_table"

RECONCILER: Final[dict[str, Coverage]] = {
    "oracle: the last operations as a multiset": (_INCREMENTAL, _SCRIPTS + "test_the_oracle_detects_differences"),
    "script incremental": _INCREMENTAL,
    "script batching": (_INCREMENTAL, _SERVICE + "test_in_batches_deletions_come_first_and_retries_are_single"),
    "script pruning": _SCRIPTS + "test_prune_waits_for_the_initialized_table",
    "script prune_empty": _SCRIPTS + "test_prune_runs_for_an_empty_table",
    "script refresh": _SCRIPTS + "test_done_rows_are_refreshed",
    "Retries order": (
        _RETRIES + "test_retries_come_in_the_order_of_their_times",
        _RETRIES + "test_retries_of_one_time_come_in_the_order_of_their_failures",
    ),
    "Retries re-add later": _RETRIES + "test_a_later_failure_replaces_the_time_of_the_earlier_one",
    "Retries popped keeps its count": _RETRIES + "test_a_popped_retry_retains_its_count",
    "Retries clear in queue": _RETRIES + "test_a_waiting_retry_can_be_cleared",
    "Retries clear after pop": _RETRIES + "test_a_popped_retry_can_be_cleared",
    "ExponentialBackoff within bounds": _RETRIES + "test_pauses_stay_within_their_bounds",
    "ExponentialBackoff d(1) = 2·d(0)": _RETRIES + "test_pauses_double",
    "StatusString": _STATUS + "test_a_status_is_formatted_as_text",
    "StatusJSON": _STATUS + "test_a_status_is_formatted_as_json",
    "StatusSet": (
        _STATUS + "test_statuses_of_a_set_are_pending_by_default",
        _STATUS + "test_a_set_is_sorted_and_immutable",
        _STATUS + "test_a_set_can_be_reset_to_pending_with_one_id",
    ),
    "WaitUntilReconciled revision 0 immediate": _SERVICE + "test_a_wait_for_revision_0_returns_at_once",
    "WaitUntilReconciled blocks": _SERVICE + "test_a_wait_for_a_future_revision_ends_when_it_is_reconciled",
    "WaitUntilReconciled watermark is the failing revision": _SERVICE + "test_the_watermark_is_the_failing_revision",
    "WaitUntilReconciled clears after success": _SERVICE + "test_the_watermark_is_the_failing_revision",
    "WaitUntilReconciled virtual time": (
        _SERVICE + "test_a_wait_for_a_future_revision_ends_when_it_is_reconciled",
        _SERVICE + "test_a_wait_for_settled_rows_ends_when_they_are_given_up",
    ),
    "MultipleReconcilers": _SERVICE + "test_each_of_several_reconcilers_performs_each_row_once",
    "RetryAfterStatusConflict": _SERVICE + "test_a_failure_is_retried_although_another_reconciler_succeeded",
    "PerModuleMetrics": _SERVICE + "test_each_of_several_reconcilers_performs_each_row_once",
}

_MATRIX: Final = _MACHINE + "test_an_outcome_counts_exactly_if_the_row_was_not_changed_during_the_attempt"

MUST_REPRODUCE: Final[dict[str, Coverage]] = {
    "all scripts, same history oracle": (
        _INCREMENTAL,
        _SCRIPTS + "test_prune_waits_for_the_initialized_table",
        _SCRIPTS + "test_prune_runs_for_an_empty_table",
        _SCRIPTS + "test_done_rows_are_refreshed",
    ),
    "retries": (
        _RETRIES + "test_retries_come_in_the_order_of_their_times",
        _MACHINE + "test_pauses_double_up_to_a_limit",
    ),
    "fuzz with an independent model": (_RANDOM, _RECONCILER + "test_model.py::TestReconcilers"),
    "status-conflict matrix: Pending": _MATRIX,
    "status-conflict matrix: same ID": (
        _MATRIX,
        _WEAK + "test_2_a_retry_is_not_lost_to_the_outcome_of_another_reconciler",
    ),
    "status-conflict matrix: Error": _MATRIX,
    "status-conflict matrix: Refreshing": (
        _MATRIX,
        _WEAK + "test_3_a_refresh_is_made_once_whatever_another_reconciler_does",
    ),
    "status-conflict matrix: deleted": (
        _MATRIX,
        _MACHINE + "test_a_row_inserted_again_during_its_delete_is_updated_afterwards",
    ),
    "delete failing then re-inserted": _MACHINE + "test_a_row_inserted_again_cancels_its_failing_delete",
    "round-size boundary": _SERVICE + "test_a_round_takes_a_limited_number_of_changes",
    "prune never before init": (
        _SCRIPTS + "test_prune_waits_for_the_initialized_table",
        _SERVICE + "test_a_prune_waits_while_the_table_is_filled_again",
    ),
    "watch-after-commit ordering": (
        _TABLE + "test_a_woken_task_sees_the_new_root",
        _TRANSACTION + "test_a_transaction_commits_notifies_and_releases_in_this_order",
    ),
    "1 M benchmark": Elsewhere(
        "a measurement is no test: `python -m bench --long reconciler` makes a million rows Done, each updated exactly once; "
        "a test shows that a row needs no task of its own",
        (_SERVICE + "test_the_number_of_tasks_does_not_depend_on_the_rows",),
    ),
}

WEAKNESSES: Final[dict[int, tuple[str, tuple[str, ...]]]] = {
    1: ("operations run one after another", (_WEAK + "test_1_a_slow_target_blocks_nothing_else",)),
    2: (
        "a retry is lost if another reconciler writes its status",
        (_WEAK + "test_2_a_retry_is_not_lost_to_the_outcome_of_another_reconciler",),
    ),
    3: (
        "a refresh is done twice",
        (_WEAK + "test_3_a_refresh_is_made_once_whatever_another_reconciler_does",),
    ),
    4: (
        "a wait for the revision of a deletion hangs",
        (
            _WEAK + "test_4_a_deletion_from_before_the_start_does_not_block_a_wait",
            _CHANGES + "test_a_stream_read_to_its_end_has_the_tables_revision",
        ),
    ),
    5: (
        "retries starve",
        (
            _WEAK + "test_5_retries_are_not_starved_if_changes_fill_every_round",
            _SERVICE + "test_retries_are_made_during_constant_changes",
        ),
    ),
    6: (
        "no jitter, no permanent errors, no end of attempts, no deadline",
        (
            _WEAK + "test_6_pauses_are_jittered_and_a_permanent_error_waits_for_a_change",
            _WEAK + "test_6_an_operation_has_a_deadline",
            _SERVICE + "test_a_wait_for_settled_rows_ends_when_they_are_given_up",
        ),
    ),
    7: (
        "a row that was replaced looks updated",
        (
            _WEAK + "test_7_a_replaced_row_is_marked_as_replaced",
            _WEAK + "test_7_a_row_is_marked_as_replaced_until_it_is_done",
            "tests/cluster/apply/test_operations.py::test_an_object_is_read_if_the_seen_state_may_be_outdated",
        ),
    ),
    8: (
        "a prune that fails waits, one that came too early is lost",
        (
            _WEAK + "test_8_a_failed_prune_is_retried_soon_and_an_early_request_is_remembered",
            _RECONCILER + "test_pruning.py::test_a_failed_prune_is_retried_soon",
        ),
    ),
    9: ("an outcome counts as a change of the table", (_WEAK + "test_9_an_outcome_does_not_change_the_table",)),
    10: ("the order of outcomes is random", (_WEAK + "test_10_the_same_events_have_the_same_order",)),
    11: (
        "a comparison that fails wakes watches",
        (_TRANSACTION + "test_a_failed_comparison_changes_nothing",),
    ),
    12: (
        "a hanging tracker retains all deletions, and cannot be identified",
        (
            _CHANGES + "test_a_tracker_too_far_behind_expires_and_is_named",
            _SERVICE + "test_forgotten_deletions_are_found_by_comparison",
        ),
    ),
    13: (
        "unique values are not unique",
        (
            _TRANSACTION + "test_duplicate_unique_values_are_refused",
            "tests/cluster/releases/test_preflight.py::test_an_object_has_one_owner_before_it_is_written",
        ),
    ),
    14: (
        "age is computed from revisions",
        (
            _WEAK + "test_14_a_refreshed_row_is_young_however_old_its_revision",
            _MACHINE + "test_rows_are_refreshed_by_age_and_not_by_revision",
        ),
    ),
    15: ("an object's health has no history", (_WEAK + "test_15_a_failure_has_a_history",)),
    16: ("a derived table ends at its first error", (_CHANGES + "test_a_derived_table_skips_rows_that_fail",)),
}
