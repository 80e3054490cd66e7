"""The weaknesses of the public peer that spec/runtime describes, by their numbers in §13, each with the tests for it.

Each of these tests fails if the code has the weakness.
"""

from typing import Final

from tests.spec_cases import Coverage, Elsewhere

MUST_HAVE_A_TEST: Final = frozenset({1, 2, 3, 4, 7, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 23})
"""Weaknesses for which a reason alone is not enough."""

_LIFECYCLE: Final = "tests/runtime/lifecycle/test_store.py::"
_STORE: Final = "tests/packages/store/test_disk_store.py::"
_STOPPING: Final = "tests/queue/test_service_stopping.py::"
_APART: Final = "tests/cluster/test_drift_apart.py::"
_HEALTH: Final = "tests/cluster/health/test_monitor.py::"
_SPEC: Final = "tests/runtime/test_spec_controller.py::"

WEAKNESSES: Final[dict[int, tuple[str, Coverage]]] = {
    1: (
        "a bounded channel is written while a lock is held",
        (
            "tests/runtime/test_spec_scheduler.py::test_any_number_of_runs_can_be_ordered_at_once",
            "tests/runtime/test_spec_scheduler.py::test_all_runs_ordered_at_once_are_performed",
            "tests/runtime/test_spec_scheduler.py::test_the_end_of_an_older_run_does_not_complete_a_newer_one",
        ),
    ),
    2: (
        "Complete does not contain the number of the run",
        (
            "tests/runtime/test_spec_scheduler.py::test_the_end_of_an_older_run_does_not_complete_a_newer_one",
            "tests/runtime/scheduler/test_machine.py::test_a_superseded_run_completes_nothing",
            "tests/queue/test_service.py::test_on_done_is_not_called_if_the_run_cancels_its_own_scope",
        ),
    ),
    3: (
        "one lock for all downloads, and no cancellation inside one",
        (
            _STORE + "test_downloads_of_different_artifacts_run_concurrently",
            _STORE + "test_an_artifact_for_several_names_is_downloaded_once",
            _STORE + "test_a_download_cancelled_at_any_await_publishes_nothing_partial",
        ),
    ),
    4: (
        "a link is removed before the new one exists; trees are trusted without a check",
        (
            _STORE + "test_a_store_killed_at_any_disk_operation_stays_consistent",
            _STORE + "test_a_damaged_tree_is_unpacked_again",
            "tests/packages/test_disk_store_faults.py::test_a_damaged_tree_stays_until_its_replacement_is_complete",
        ),
    ),
    5: (
        "a signature protects only the download",
        Elsewhere(
            "nothing is mounted: every file of a tree is compared with the digest of the artifact before use",
            (
                _STORE + "test_a_damaged_tree_is_unpacked_again",
                _STORE + "test_a_tree_under_the_name_of_another_package_is_not_trusted",
            ),
        ),
    ),
    6: (
        "legal names refused, links dropped, parents missing",
        (
            "tests/formats/archives/test_archive_tree.py::test_legal_names_are_split_into_parts",
            "tests/formats/archives/test_archive_tree.py::test_links_inside_the_tree_may_lack_a_target",
            "tests/formats/archives/test_archive_tree.py::test_missing_parent_folders_are_created_once",
        ),
    ),
    7: (
        "stopping one queue blocks all others, and abandons its worker",
        (
            _STOPPING + "test_removing_a_queue_interrupts_its_tasks_and_delays_no_other_queue",
            _STOPPING + "test_a_name_used_again_while_its_queue_is_ending_waits_for_that_end",
        ),
    ),
    8: (
        "events after a disable create queues that are never removed",
        (
            _SPEC + "test_late_events_after_a_disable_or_removal_create_no_queue",
            "tests/runtime/tasks/test_start_tasks.py::test_event_hooks_stop_with_the_package",
        ),
    ),
    9: (
        "a closed channel of events causes a busy loop",
        (
            "tests/runtime/core/test_service.py::test_events_and_ticks_reach_the_runtime",
            "tests/hooks/running/test_hook_services.py::test_start_after_close_is_refused",
        ),
    ),
    10: (
        "a wait for synchronisations cannot be cancelled",
        _SPEC + "test_a_hanging_synchronisation_is_superseded_at_once",
    ),
    11: (
        "one broken definition blocks every package",
        "tests/runtime/tasks/test_crd_tasks.py::test_a_broken_crd_fails_only_its_own_package",
    ),
    12: (
        "enabled scripts run inside the scheduler, without a timeout, at every pass",
        (
            "tests/hooks/running/test_enabled_script.py::test_enabled_script_is_ended_before_the_runner_limit",
            "tests/runtime/test_scheduler_votes.py::test_an_outstanding_vote_holds_the_node_and_higher_orders",
        ),
    ),
    13: (
        "enabling a module cancels all work",
        "tests/runtime/scheduler/test_machine.py::test_enabling_a_module_schedules_only_that_module",
    ),
    14: (
        "only a random one of several unmet dependencies is reported",
        (
            "tests/runtime/scheduler/test_rules.py::test_dependencies_must_be_on_in_a_suitable_version",
            "tests/runtime/scheduler/test_rules.py::test_messages_do_not_depend_on_the_order_of_requirements",
            "tests/runtime/test_scheduler_rules.py::test_effects_do_not_depend_on_the_order_of_insertion",
        ),
    ),
    15: (
        "only absence counts as drift, one failed list makes all unknown, checks block every package, pauses are lost",
        (
            "tests/cluster/drift/test_monitor.py::test_a_field_changed_by_another_process_is_corrected",
            "tests/cluster/test_drift_random.py::test_exactly_the_foreign_changes_are_found",
            "tests/runtime/test_kept.py::test_changes_by_another_process_are_corrected_or_reported",
            _APART + "test_a_kind_that_cannot_be_listed_does_not_affect_others",
            _APART + "test_a_hanging_call_blocks_nothing_else",
            _APART + "test_a_pause_outlives_the_rows_at_its_beginning",
            _APART + "test_resuming_without_a_pause_changes_nothing",
        ),
    ),
    16: (
        "health is reported at changes of state only; DaemonSets and Jobs are ignored",
        (
            "tests/cluster/test_health_workloads.py::test_every_status_change_of_daemon_sets_and_jobs_is_reported",
            _HEALTH + "test_a_release_becomes_healthy_and_every_message_change_is_reported",
            "tests/cluster/health/test_health.py::test_a_changed_message_is_a_difference_and_a_further_ready_object_is_not",
            "tests/runtime/core/test_release_events.py::test_a_failed_workload_is_reported_until_it_recovers",
        ),
    ),
    17: (
        "values changed after helm are applied once; patches grow without limit and are lost on reload",
        (
            "tests/runtime/tasks/test_run_tasks.py::test_values_changed_by_afterhelm_hooks_are_applied_until_stable",
            "tests/runtime/tasks/test_run_tasks.py::test_endless_value_changes_of_hooks_are_reported",
            "tests/hooks/running/test_values_patch.py::test_the_last_operation_on_a_path_is_stored_and_paths_are_sorted",
            "tests/runtime/lifecycle/test_package_state.py::test_a_stored_state_is_read_by_the_next_process",
        ),
    ),
    18: (
        "permanent errors are retried for ever like transient ones",
        (
            "tests/queue/test_service.py::test_a_permanent_failure_parks_until_an_input_changes",
            "tests/runtime/status/test_failures.py::test_every_expected_error_has_its_reason",
            "tests/runtime/core/test_runtime.py::test_a_package_that_cannot_be_rendered_is_stalled_until_its_settings_change",
        ),
    ),
    19: (
        "a desired state is adopted and lost with a removal; a change of maintenance alone is ignored; the guard is inverted",
        (
            "tests/runtime/lifecycle/test_lifecycle_machine.py::test_only_a_running_removal_can_be_completed",
            _LIFECYCLE + "test_a_package_recreated_during_its_removal_is_new_afterwards",
            "tests/runtime/lifecycle/test_desired_state.py::test_each_changed_field_gives_its_change_and_decision",
            "tests/runtime/test_simulation.py::test_a_desired_state_set_during_a_removal_is_applied_afterwards",
            "tests/runtime/test_runtime_methods.py::test_a_desired_state_set_during_a_removal_is_applied_afterwards",
        ),
    ),
    20: (
        "every file without an extension is executed",
        "tests/hooks/running/test_discovery.py::test_discovery_runs_only_hooks_and_only_with_the_config_argument",
    ),
    21: (
        "a state is reported by a fake error; wrong labels",
        "tests/runtime/tasks/test_pipeline.py::test_each_operation_has_its_tasks",
    ),
    22: (
        "the version is read from the file system; images of removed packages stay",
        (
            "tests/packages/definition/test_definition.py::test_the_version_in_the_package_wins_over_the_requested_one",
            "tests/packages/store/test_disk_store.py::test_collect_deletes_unused_trees_blobs_and_temporary_files",
        ),
    ),
    23: (
        "items are not checked; a missing key satisfies a rule",
        (
            "tests/formats/cel/test_rules.py::test_rules_are_evaluated_at_every_level",
            "tests/formats/cel/test_rules.py::test_a_missing_key_never_satisfies_a_rule",
        ),
    ),
    24: ("a hint for listing tags is trusted", Elsewhere("tags are not listed: a version is requested by its name")),
}
