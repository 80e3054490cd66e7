"""Tests that cover the test cases of the reference.

The *reference* is the public peer that the specification spec/runtime describes. (The specifications are not part of this
repository.) For each suite of the reference, a dictionary maps the name of each case to the test or tests here that cover it. If
a case does not apply here, the value is :class:`Elsewhere`, with the reason, and with tests of the actual behavior.
`tests/test_spec_cases.py` checks that every test exists, and that every case has a test or a reason.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A case that cannot occur here, or that is handled differently on purpose; ``tests`` cover the actual behavior."""

    why: str
    tests: tuple[str, ...] = ()


Coverage: TypeAlias = str | tuple[str, ...] | Elsewhere

_MACHINE: Final = "tests/runtime/scheduler/test_machine.py::"
_VOTES: Final = "tests/runtime/test_scheduler_votes.py::"
_SCHEDULER: Final = "tests/runtime/scheduler/test_scheduler.py::"
_RULES: Final = "tests/runtime/scheduler/test_rules.py::"
_QUEUE: Final = "tests/queue/test_service.py::"
_STOPPING: Final = "tests/queue/test_service_stopping.py::"
_STORE: Final = "tests/packages/store/test_disk_store.py::"
_FAULTS: Final = "tests/packages/test_disk_store_faults.py::"
_SPEC_STORE: Final = "tests/packages/test_spec_store.py::"
_DEFINITION: Final = "tests/packages/definition/test_definition.py::"
_STATUS: Final = "tests/runtime/status/test_transitions.py::"
_ROUTES: Final = "tests/debug/server/test_routes.py::"
_RUNTIME: Final = "tests/runtime/core/test_runtime.py::"
_CONTROLLER: Final = "tests/runtime/controllers/test_controller.py::"
_WORDS: Final = "tests/cluster/test_release_words.py::"
_SPEC_CONTROLLER: Final = "tests/runtime/test_spec_controller.py::"

SCHEDULER: Final[dict[str, Coverage]] = {
    "AddNodeAndSchedule": _MACHINE + "test_add_node_and_schedule",
    "FloorDisableKeepsNodeOff": _MACHINE + "test_floor_disable_keeps_node_off",
    "OrderTierGate": _MACHINE + "test_order_tier_gate",
    "DisabledNodeUnblocksHigherTier": _MACHINE + "test_disabled_node_unblocks_higher_tier",
    "MandatoryDependency": _MACHINE + "test_mandatory_dependency",
    "ConditionalDependencyAbsentIsOK": _MACHINE + "test_conditional_dependency_absent_is_ok",
    "SameTierDependencyWaitsForActive": _MACHINE + "test_same_tier_dependency_waits_for_active",
    "DisabledDependencyDoesNotSatisfy": _MACHINE + "test_disabled_dependency_does_not_satisfy",
    "DependencyConstraintCheckedAgainstGraphVersion": (
        _MACHINE + "test_dependency_constraint_checked_against_graph_version"
    ),
    "EnabledToDisabledFlipEmitsEventDisable": _MACHINE + "test_enabled_to_disabled_flip_emits_event_disable",
    "StatusFlipResetsOnlyAffectedNode": _MACHINE + "test_status_flip_resets_only_affected_node",
    "AddNodeRejectsCyclicAddition": _MACHINE + "test_add_node_rejects_cyclic_addition",
    "CheckConstraintsRejectsDependencyCycle": _SCHEDULER + "test_admission_rejects_a_cycle_with_its_whole_path",
    "PauseSuppressesScheduling": _MACHINE + "test_pause_suppresses_scheduling",
    "AnyOf SatisfiedMemberEnables": _MACHINE + "test_any_of_satisfied_member_enables",
    "AnyOf NoInstalledMemberDisables": _MACHINE + "test_any_of_no_installed_member_disables",
    "AnyOf InstalledButConstraintFails": _MACHINE + "test_any_of_installed_but_constraint_fails",
    "AnyOf NilConstraintAcceptsAny": _MACHINE + "test_any_of_nil_constraint_accepts_any",
    "AnyOf MultipleGroupsAllMustPass": _MACHINE + "test_any_of_multiple_groups_all_must_pass",
    "AnyOf DoesNotCreateDependencyEdge": _MACHINE + "test_any_of_does_not_create_dependency_edge",
    "AnyOf RejectsAtAdmission": _SCHEDULER + "test_admission_rejects_unmet_constraints_with_their_reason",
    "AnyOf MemberInstallTriggersReschedule": _MACHINE + "test_any_of_member_install_triggers_reschedule",
    "VersionRejectionNamesSubject": _RULES + "test_version_rejection_names_subject_constraint_and_current",
    "NoneOf NoInstalledMemberEnables": _MACHINE + "test_none_of_no_installed_member_enables",
    "NoneOf NilConstraintViolated": _MACHINE + "test_none_of_nil_constraint_violated",
    "NoneOf InForbiddenRange": _MACHINE + "test_none_of_in_and_outside_forbidden_range",
    "NoneOf OutsideRange": _MACHINE + "test_none_of_in_and_outside_forbidden_range",
    "NoneOf MultipleGroups": _MACHINE + "test_none_of_multiple_groups",
    "NoneOf NoEdge": _MACHINE + "test_none_of_no_edge",
    "NoneOf RejectsAtAdmission": _SCHEDULER + "test_admission_rejects_unmet_constraints_with_their_reason",
    "NoneOf MemberInstallTriggersDisable": _MACHINE + "test_none_of_member_install_triggers_disable",
    "RescheduleFansOutToDirectSubscribers": _MACHINE + "test_reschedule_fans_out_to_direct_subscribers",
    "RescheduleOnEnableRevertsEntireGraph": Elsewhere(
        "enabling a module cancels no other work (weakness 13); definitions are applied before objects of their kinds",
        (
            _MACHINE + "test_enabling_a_module_schedules_only_that_module",
            "tests/runtime/tasks/test_crd_tasks.py::test_a_package_may_use_kinds_of_a_package_that_it_does_not_require",
        ),
    ),
    "DynamicRule EnablesOverFloor": _VOTES + "test_dynamic_rule_enables_over_floor",
    "DynamicRule NilDefersToFloor": _VOTES + "test_dynamic_rule_nil_defers_to_floor",
    "DynamicRule DisableOverridesBundle": _MACHINE + "test_dynamic_disable_overrides_the_bundle",
    "ScriptRule TrueDoesNotEnableOverFloor": _VOTES + "test_script_rule_true_does_not_enable_over_floor",
    "ScriptRule TrueDoesNotForbid": _VOTES + "test_script_rule_true_does_not_forbid",
    "ScriptRule FalseForbids": _VOTES + "test_script_rule_false_and_error_forbid",
    "ScriptRule ErrorForbids": _VOTES + "test_script_rule_false_and_error_forbid",
    "ScriptRule DisableSurfacesReason": _RULES + "test_reasons_and_errors_of_scripts_are_quoted",
}

QUEUE: Final[dict[str, Coverage]] = {
    "basic enqueue": _QUEUE + "test_tasks_of_a_queue_run_in_order_and_each_callback_is_called",
    "FIFO": "tests/queue/test_machine.py::test_tasks_of_a_lane_run_in_order",
    "retry until success (fails twice)": _QUEUE + "test_retries_run_at_exact_times_and_delay_later_tasks",
    "permanent failure": _QUEUE + "test_a_permanent_failure_parks_until_an_input_changes",
    "cancelling a running task is quick and releases the waiter": (
        _QUEUE + "test_cancelling_during_a_run_interrupts_it_and_the_next_begins",
        _QUEUE + "test_a_task_cancelled_during_backoff_leaves_at_once",
    ),
    "unique": (
        _QUEUE + "test_unique_work_is_refused_while_the_same_work_waits",
        "tests/queue/test_machine.py::test_unique_allows_one_running_and_one_waiting_task",
    ),
    "stop is quick": (
        _STOPPING + "test_a_deadline_around_bounds_the_drain",
        _STOPPING + "test_removing_a_queue_interrupts_its_tasks_and_delays_no_other_queue",
    ),
    "empty queue": _STOPPING + "test_removing_an_unknown_queue_returns_at_once",
    "50 concurrent enqueues": _QUEUE + "test_tasks_of_fifty_concurrent_callers_keep_their_order",
    "hasSeveral": "tests/queue/test_machine.py::test_unique_allows_one_running_and_one_waiting_task",
    "Start idempotent": Elsewhere(
        "a queue is not started: its first task creates it, and two queues of one name never run at once",
        (_STOPPING + "test_a_name_used_again_while_its_queue_is_ending_waits_for_that_end",),
    ),
    "service": (_QUEUE + "test_queues_run_in_parallel", _QUEUE + "test_a_thousand_queues_run_and_retry"),
}

STORE: Final[dict[str, Coverage]] = {
    "Deploy success": _STORE + "test_a_package_is_downloaded_installed_and_deployed",
    "Deploy cancelled": _STORE + "test_a_download_cancelled_at_any_await_publishes_nothing_partial",
    "Deploy registry error as a status error": (
        _FAULTS + "test_a_failed_download_leaves_no_files",
        "tests/runtime/status/test_failures.py::test_every_expected_error_has_its_reason",
    ),
    "partial download not published and retry works": (
        _FAULTS + "test_a_failed_download_leaves_no_files",
        _STORE + "test_a_waiting_download_takes_over_from_a_cancelled_one",
    ),
    "completed version reused with zero registry calls": (
        _STORE + "test_existing_blobs_are_not_downloaded_again",
        _STORE + "test_an_installed_package_can_be_deployed_without_its_registry",
    ),
    "creates the link": _STORE + "test_a_package_is_downloaded_installed_and_deployed",
    "replaces the link, downgrade": _STORE + "test_deploying_and_undeploying_change_only_the_link",
    "Undeploy keep": _STORE + "test_deploying_and_undeploying_change_only_the_link",
    "Undeploy delete": _STORE + "test_collect_deletes_unused_trees_blobs_and_temporary_files",
    "Undeploy idempotent": _STORE + "test_deploying_and_undeploying_change_only_the_link",
    "Undeploy keeps several versions": _STORE + "test_deploying_and_undeploying_change_only_the_link",
    "Cleanup empty preserve removes all": _STORE + "test_collect_deletes_unused_trees_blobs_and_temporary_files",
    "Cleanup sibling versions, packages, repositories": _SPEC_STORE
    + "test_packages_deployed_under_another_name_are_not_collected",
    "Cleanup link kept or removed by target": Elsewhere(
        "links decide which trees are retained: a link is deleted with its package, a tree with its last link",
        (
            _STORE + "test_collect_deletes_unused_trees_blobs_and_temporary_files",
            _SPEC_STORE + "test_a_broken_link_is_replaced",
        ),
    ),
    "Cleanup relative link target": _STORE + "test_a_package_is_downloaded_installed_and_deployed",
    "Cleanup non-symlink left alone": _STORE + "test_foreign_files_in_the_deployed_folder_are_not_changed",
    "Cleanup `deployed` skipped": Elsewhere(
        "links are beside the store, not in it; only names that are digests are collected",
        (_STORE + "test_foreign_files_in_the_deployed_folder_are_not_changed",),
    ),
    "Cleanup empty dirs collapse": Elsewhere(
        "trees are named by digest in one flat folder: there are no folders of packages to empty",
        (_STORE + "test_collect_deletes_unused_trees_blobs_and_temporary_files",),
    ),
    "Cleanup missing tree ok": _SPEC_STORE + "test_collecting_an_empty_store_deletes_nothing",
    "Cleanup cancelled leaves the tree": _STORE + "test_a_download_cancelled_at_any_await_publishes_nothing_partial",
    "Lifecycle over version sequences": _SPEC_STORE + "test_a_name_follows_any_sequence_of_versions",
}

LOADER: Final[dict[str, Coverage]] = {
    "app complete": _DEFINITION + "test_the_definition_of_an_application_is_read",
    "app minimal": "tests/packages/test_spec_definition.py::test_a_minimal_package_has_defaults",
    "app with digests": (
        _DEFINITION + "test_the_definition_of_an_application_is_read",
        _DEFINITION + "test_image_digests_are_read",
    ),
    "module complete": (
        _DEFINITION + "test_the_definition_of_a_module_is_read",
        _DEFINITION + "test_module_yaml_is_read_unless_package_yaml_exists",
    ),
    "module minimal": "tests/packages/test_spec_definition.py::test_a_minimal_package_has_defaults",
    "module with digests": _DEFINITION + "test_image_digests_are_read",
    "not found": _DEFINITION + "test_a_missing_package_folder_is_refused",
    "invalid dir name": Elsewhere(
        "a package is read from a tree named by its digest; the package's own name is checked",
        (_DEFINITION + "test_invalid_package_names_are_refused",),
    ),
    "dto definition": (
        _DEFINITION + "test_invalid_packages_are_refused_with_the_file",
        _DEFINITION + "test_module_yaml_is_read_unless_package_yaml_exists",
    ),
    "values loader": (
        _DEFINITION + "test_static_values_can_be_flat_or_in_a_section",
        "tests/packages/settings/test_values.py::test_values_are_merged_in_layers",
    ),
}

HOOKS: Final[dict[str, Coverage]] = {
    "both hooks of one file survive": (
        "tests/hooks/test_spec_hooks.py::test_all_bindings_of_a_hook_are_retained_and_accessible"
    ),
    "every hook reachable for wiring": (
        "tests/hooks/test_spec_hooks.py::test_all_bindings_of_a_hook_are_retained_and_accessible",
        "tests/hooks/running/test_package_hooks.py::test_equal_bindings_of_a_hook_have_separate_monitors",
    ),
    "insertion order": (
        "tests/hooks/running/test_discovery.py::test_hooks_are_discovered_in_path_order_with_their_configuration"
    ),
    "returned slice is a copy": "tests/hooks/test_spec_hooks.py::test_returned_hooks_monitors_and_schedules_are_immutable",
}

STATUS: Final[dict[str, Coverage]] = {
    "countProgress table": "tests/runtime/status/test_progress.py::test_completed_and_remaining_objects_are_counted",
    "SetMaintenanceMode seed Unknown, on, off clears": _STATUS + "test_maintenance_is_set_and_cleared",
    "SetMaintenanceMode notifies only on change": (
        _STATUS + "test_maintenance_is_set_and_cleared",
        _CONTROLLER + "test_an_unchanged_status_is_not_written",
    ),
    "SetMaintenanceMode ignores untracked": Elsewhere(
        "a status is a value that belongs to its package: an unknown package has none",
        ("tests/runtime/test_status_machine.py::TestStory",),
    ),
    "waitingFor started ops hide queued ones": Elsewhere(
        "unfinished objects are named, also those that wait for their turn, because users wait for them; finished ones are not",
        (
            _WORDS + "test_progress_lists_only_unfinished_objects_of_the_release",
            "tests/runtime/tasks/test_rendering.py::test_waiting_objects_are_listed_in_order_and_limited",
        ),
    ),
    "waitingFor queued named if none started": (
        "tests/cluster/releases/test_upgrade.py::test_progress_lists_unapplied_objects_with_the_reason"
    ),
    "waitingFor dedupe": (
        "tests/runtime/status/test_progress.py::test_every_object_is_counted_once",
        _WORDS + "test_progress_lists_only_unfinished_objects_of_the_release",
    ),
    "waitingFor bookkeeping excluded": (
        _WORDS + "test_progress_lists_only_unfinished_objects_of_the_release",
        _WORDS + "test_an_unchanged_upgrade_reports_no_progress",
    ),
    "condition rules": (
        "tests/runtime/status/test_conditions.py::test_every_failure_sets_its_conditions",
        "tests/runtime/status/test_conditions.py::test_conditions_of_a_removed_package_are_false_with_their_last_message",
    ),
    "summary": (
        "tests/runtime/status/test_summary.py::test_states_outrank_each_other",
        "tests/runtime/status/test_package_status.py::test_the_phase_follows_from_installation_and_version",
    ),
    "health reducers": (
        "tests/cluster/watch/test_readiness.py::test_each_kind_has_its_readiness",
        "tests/cluster/health/test_health.py::test_the_health_of_a_release_has_one_state",
    ),
    "endpoints": (
        "tests/cluster/api/test_endpoints.py::test_an_ingress_gives_its_hosts_and_paths",
        "tests/cluster/api/test_endpoints.py::test_only_annotated_objects_have_endpoints_and_the_annotation_describes_them",
        "tests/runtime/test_spec_apply.py::test_endpoints_are_reported_even_if_nothing_is_applied",
    ),
}

API: Final[dict[str, Coverage]] = {
    "public tree hides packages": Elsewhere(
        "there is no public listener: only its owner may open the socket, and even there secrets are masked",
        (
            "tests/debug/server/test_socket_file.py::test_only_the_owner_may_use_the_socket_with_any_umask",
            _ROUTES + "test_secrets_that_a_package_names_are_in_no_answer",
            _ROUTES + "test_unknown_paths_and_queries_are_refused",
        ),
    ),
    "private serves exact bodies and content types": (
        _ROUTES + "test_documents_are_answered_as_json_and_yaml",
        _ROUTES + "test_one_item_is_selected_by_name",
    ),
    "output param": (
        _ROUTES + "test_documents_are_answered_as_json_and_yaml",
        _ROUTES + "test_unknown_paths_and_queries_are_refused",
    ),
    "render error mapping": (
        _ROUTES + "test_a_package_deleted_while_rendering_is_answered",
        "tests/debug/client/test_client.py::test_a_failed_render_request_is_an_error",
    ),
    "readyz follows converge": Elsewhere(
        "readiness is that of the daemon; one package that never settles must not make the daemon unready",
        (_ROUTES + "test_readiness_depends_on_start_and_draining",),
    ),
    "endpoints lists every route": _ROUTES + "test_endpoints_lists_every_route_and_every_route_answers",
}

TASKS: Final[dict[str, Coverage]] = {
    "isEmbeddedPath table": Elsewhere("no package is built into the daemon: every package is downloaded and installed"),
    "Cleanup task succeeds": _RUNTIME + "test_a_removal_leaves_nothing_and_the_name_can_be_used_again",
    "Cleanup task succeeds when cancelled": Elsewhere(
        "the clean-up is no task: it runs outside the queue that it removes, and cannot be cancelled",
        (_STOPPING + "test_a_queue_can_be_removed_by_a_task_that_on_done_wakes",),
    ),
    "Cleanup task idempotent": (
        "tests/runtime/lifecycle/test_store.py::test_only_a_running_removal_can_be_completed",
        "tests/runtime/test_simulation.py::TestSimulation",
    ),
    "Cleanup task label": Elsewhere("the clean-up is in no queue, and so in no dump"),
    "ensurecrd": (
        "tests/runtime/tasks/test_crd_tasks.py::test_a_package_may_use_kinds_of_a_package_that_it_does_not_require",
        "tests/runtime/tasks/test_crd_tasks.py::test_a_broken_crd_fails_only_its_own_package",
    ),
    "orphans": (
        "tests/runtime/tasks/test_purge.py::test_only_objects_of_declared_kinds_are_deleted",
        "tests/runtime/tasks/test_purge.py::test_an_invalid_declaration_is_skipped",
        "tests/runtime/tasks/test_purge.py::test_a_refused_deletion_is_retried_and_delays_no_other",
    ),
}

SETTINGS: Final[dict[str, Coverage]] = {
    "CEL": (
        "tests/formats/cel/test_engine.py::test_rules_documented_by_kubernetes_hold",
        "tests/formats/cel/test_rules.py::test_rules_are_evaluated_at_every_level",
    ),
    "immutable": "tests/formats/schemas/test_immutable.py::test_changes_of_immutable_parts_are_reported",
    "grants": Elsewhere("there are no projects with a catalogue of allowed packages"),
    "conversions": "tests/packages/definition/test_conversions.py::test_settings_are_converted_to_the_newest_version",
}

APPLICATIONS: Final[dict[str, Coverage]] = {
    "resource-not-found": (
        "tests/runtime/test_controller_modules.py::test_a_resource_deleted_before_its_first_reconciliation_leaves_nothing",
        _RUNTIME + "test_a_package_whose_resource_vanishes_is_still_removed",
    ),
    "package-not-found": _SPEC_CONTROLLER + "test_a_missing_package_is_reported_and_can_be_replaced_by_another",
    "version-not-found": _RUNTIME + "test_a_missing_version_is_reported_and_the_old_one_stays",
    "version-is-draft": (
        _SPEC_CONTROLLER + "test_a_version_without_readable_metadata_is_skipped_in_a_range",
        _SPEC_CONTROLLER + "test_an_exact_version_without_readable_metadata_is_refused",
        "tests/runtime/test_versions.py::test_a_package_waits_for_the_first_scan_of_its_repository",
    ),
    "repository-not-found": _RUNTIME + "test_a_missing_repository_is_reported_and_its_creation_noticed",
    "successful-reconcile": _RUNTIME + "test_an_application_becomes_ready_and_is_applied",
    "successful-reconcile all-falses": "tests/runtime/status/test_conditions.py::test_every_failure_sets_its_conditions",
    "successful-reconcile some-falses": "tests/runtime/status/test_conditions.py::test_every_failure_sets_its_conditions",
    "repeated-reconcile": (
        _CONTROLLER + "test_an_unchanged_status_is_not_written",
        "tests/runtime/test_runtime_methods.py::test_only_a_changed_desired_state_begins_an_operation",
    ),
    "version-switch": _SPEC_CONTROLLER + "test_versions_are_switched_up_and_down",
    "version-update": (
        _SPEC_CONTROLLER + "test_versions_are_switched_up_and_down",
        _RUNTIME + "test_every_status_written_during_an_update_is_true",
    ),
    "package-switch": _SPEC_CONTROLLER + "test_a_missing_package_is_reported_and_can_be_replaced_by_another",
    "stale-owner-references": _SPEC_CONTROLLER + "test_stale_owner_references_are_neither_followed_nor_changed",
    "registry-spec-changed": (
        _SPEC_CONTROLLER + "test_correcting_a_repository_retries_its_failed_packages",
        "tests/runtime/test_controller_inputs.py::test_a_new_registry_password_does_not_affect_installed_packages",
    ),
    "maintenance-mode": "tests/runtime/core/test_operations.py::test_changes_by_users_stay_under_maintenance",
    "update-settings": _RUNTIME + "test_new_settings_are_applied_without_a_download",
    "delete": _RUNTIME + "test_a_removal_leaves_nothing_and_the_name_can_be_used_again",
    "delete-not-attached": (
        _RUNTIME + "test_a_package_of_an_earlier_process_is_removed_too",
        "tests/runtime/tasks/test_run_tasks.py::test_uninstalling_an_invalid_release_name_succeeds",
    ),
    "delete-already-released": _CONTROLLER + "test_foreign_finalizers_are_retained",
    "delete-after-version-edit": (_SPEC_CONTROLLER + "test_a_deletion_right_after_a_version_change_leaves_nothing"),
}

_SCAN: Final = "tests/runtime/repositories/test_package_scan.py::"
_FOLLOWED: Final = "tests/runtime/test_versions.py::"

VERSIONS: Final[dict[str, Coverage]] = {
    "successful": (
        _SCAN + "test_a_scan_without_changes_reads_tags_and_the_version_in_use",
        _FOLLOWED + "test_a_range_follows_a_new_tag_within_one_scan",
    ),
    "registry-error": _FOLLOWED + "test_a_repository_reports_its_own_problems",
    "metadata-parsing-error": _SCAN + "test_a_tag_that_is_no_package_is_listed_with_the_reason",
    "two-errors": (
        "tests/runtime/repositories/test_repository_status.py::test_problems_of_packages_are_in_the_status_of_the_repository",
        "tests/runtime/repositories/test_scan_plan.py::test_pauses_after_failures_grow_up_to_the_interval",
    ),
    "error-to-success": _FOLLOWED + "test_a_missing_package_is_reported_by_package_and_repository",
    "non-draft": _SCAN + "test_a_scan_without_changes_reads_tags_and_the_version_in_use",
    "no-bundle-image-in-registry": (
        _SCAN + "test_a_tag_deleted_during_the_scan_is_listed_without_details",
        _FOLLOWED + "test_a_pinned_digest_is_installed_whatever_its_tag_points_at",
    ),
    "deletion": _FOLLOWED + "test_a_repository_in_use_is_not_deleted_and_names_its_users",
}

SUITES: Final = {
    "scheduler": SCHEDULER,
    "queue": QUEUE,
    "store": STORE,
    "loader": LOADER,
    "hooks": HOOKS,
    "status": STATUS,
    "API": API,
    "tasks": TASKS,
    "settings": SETTINGS,
    "applications": APPLICATIONS,
    "package versions": VERSIONS,
}
