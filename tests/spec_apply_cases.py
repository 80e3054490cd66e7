"""Tests that cover the cases of applying and reconciling releases: Helm, drift, orphans, health, endpoints (spec/runtime §8).

The notation is that of `tests/spec_cases.py`, which has the cases of spec/runtime §12. The names of the cases here are those of
`tests/spec_names.py`, and `tests/test_spec_cases.py` checks that no name is missing.
"""

from typing import Final

from tests.spec_cases import Coverage, Elsewhere

_ENGINE: Final = "tests/cluster/releases/test_engine.py::"
_UPGRADE: Final = "tests/cluster/releases/test_upgrade.py::"
_KEPT: Final = "tests/cluster/test_releases_kept.py::"
_UNINSTALL: Final = "tests/cluster/releases/test_uninstall.py::"
_REMOVAL: Final = "tests/cluster/apply/test_removal.py::"
_OWNERSHIP: Final = "tests/cluster/objects/test_ownership.py::"
_MONITOR: Final = "tests/cluster/drift/test_monitor.py::"
_APART: Final = "tests/cluster/test_drift_apart.py::"
_READINESS: Final = "tests/cluster/watch/test_readiness.py::"
_HEALTH: Final = "tests/cluster/health/test_health.py::"
_HEALTHS: Final = "tests/cluster/health/test_monitor.py::"
_ENDPOINTS: Final = "tests/cluster/api/test_endpoints.py::"
_SPEC: Final = "tests/runtime/test_spec_apply.py::"
_KEEPING: Final = "tests/runtime/core/test_release_events.py::"
_OPERATIONS: Final = "tests/runtime/core/test_operations.py::"
_PURGE: Final = "tests/runtime/tasks/test_purge.py::"
_CRDS: Final = "tests/runtime/tasks/test_crd_tasks.py::"
_PACKED: Final = "tests/packages/settings/test_values.py::"

IDENTITY: Final[dict[str, Coverage]] = {
    "release name and namespace are the package's": (
        _SPEC + "test_objects_and_records_name_their_release",
        "tests/runtime/resources/test_identity.py::test_a_release_has_at_most_53_characters",
    ),
    "labels and annotations of resources": (
        _SPEC + "test_objects_and_records_name_their_release",
        _OPERATIONS + "test_changes_by_users_stay_under_maintenance",
        _OWNERSHIP + "test_owned_labels_and_annotates_a_copy",
    ),
    "labels of the release": (
        "tests/cluster/records/test_release.py::test_helms_own_labels_are_not_user_labels",
        _SPEC + "test_start_and_end_of_maintenance_make_one_revision_each",
    ),
    "operation timeout": Elsewhere(
        "an operation is superseded by the next one and has no timeout: each request and each attempt has its own timeout",
        (
            _UPGRADE + "test_a_superseded_upgrade_ends_at_once_and_the_next_continues",
            _UPGRADE + "test_a_hanging_request_does_not_block_the_next_upgrade",
            "tests/cluster/reconciler/test_weaknesses.py::test_6_an_operation_has_a_deadline",
        ),
    ),
}

UPGRADE: Final[dict[str, Coverage]] = {
    "1 packages with and without a chart": (
        "tests/runtime/tasks/test_run_tasks.py::test_a_package_without_a_chart_runs_only_hooks",
        "tests/packages/rendering/test_helm_renderer.py::test_a_missing_chart_is_refused",
    ),
    "2 a marked, deployed release is not changed under maintenance": (
        _OPERATIONS + "test_changes_by_users_stay_under_maintenance"
    ),
    "2 pending, failed or unmarked is applied once": (
        _SPEC + "test_an_incomplete_release_is_applied_even_under_maintenance"
    ),
    "3 endpoints are collected even if nothing is applied": (
        _SPEC + "test_endpoints_are_reported_even_if_nothing_is_applied"
    ),
    "4 checksum: maintenance is one upgrade in, one out": (
        _SPEC + "test_start_and_end_of_maintenance_make_one_revision_each"
    ),
    "5 needed: no release": _ENGINE + "test_an_install_applies_and_records_the_objects",
    "5 needed: not deployed": _ENGINE + "test_a_failed_upgrade_retains_the_deployed_record_and_the_next_one_prunes",
    "5 needed: a foreign release": _KEPT + "test_an_identical_release_of_helm_is_applied_nevertheless",
    "5 needed: another checksum": (
        _ENGINE + "test_every_changed_input_makes_a_revision",
        "tests/cluster/releases/test_request.py::test_any_changed_input_changes_the_fingerprint",
    ),
    "5 needed: a resource is absent": (
        _ENGINE + "test_a_deleted_object_is_restored_by_itself",
        _ENGINE + "test_after_a_restart_an_unchanged_upgrade_writes_only_missing_objects",
    ),
    "6 not needed: still monitored": (
        _KEPT + "test_a_restored_release_is_corrected_as_before",
        _KEPT + "test_a_release_with_drift_is_not_unchanged",
    ),
    "6 needed: progress is reported": (
        "tests/cluster/test_release_words.py::test_progress_lists_only_unfinished_objects_of_the_release",
        "tests/runtime/status/test_transitions.py::test_progress_is_reported_while_an_operation_runs",
    ),
    "reasons": (
        "tests/runtime/status/test_failures.py::test_every_expected_error_has_its_reason",
        "tests/runtime/status/test_reasons.py::test_a_reason_is_found_by_its_text",
    ),
}

REMOVAL: Final[dict[str, Coverage]] = {
    "Delete uninstalls": (
        _UNINSTALL + "test_an_uninstall_deletes_objects_and_records",
        "tests/runtime/core/test_runtime.py::test_a_removal_leaves_nothing_and_the_name_can_be_used_again",
    ),
    "Render does not change the release": (
        "tests/runtime/tasks/test_rendering.py::test_rendering_on_request_does_not_change_the_release"
    ),
    "GetConversionWebhooks": (
        _CRDS + "test_conversion_webhooks_exist_before_the_release_and_belong_to_it",
        _CRDS + "test_conversion_webhooks_of_a_release_that_was_never_applied_are_removed",
    ),
    "Cleanup deletes unowned releases": (
        _REMOVAL + "test_the_engine_prunes_objects_of_no_record_once_all_releases_are_known",
        _REMOVAL + "test_pruning_deletes_only_our_objects_of_complete_releases",
        _KEPT + "test_nothing_is_pruned_before_all_expected_releases_are_known",
    ),
    "Cleanup continues after failures": (
        "tests/cluster/reconciler/test_weaknesses.py::"
        "test_8_a_failed_prune_is_retried_soon_and_an_early_request_is_remembered"
    ),
}

VALUES: Final[dict[str, Coverage]] = {
    "context of an application": _PACKED + "test_templates_of_an_application_see_values_platform_and_context",
    "context of a module": _PACKED + "test_templates_of_a_module_see_values_platform_and_context",
    "layers": (
        _PACKED + "test_values_are_merged_in_layers",
        "tests/runtime/tasks/test_values.py::test_layers_override_each_other_in_order",
    ),
    "defaults only fill what is absent": (
        _PACKED + "test_values_are_merged_in_layers",
        _PACKED + "test_packages_without_schemas_have_no_defaults",
    ),
    "patches are compacted": (
        "tests/hooks/running/test_values_patch.py::test_compacted_patches_give_the_same_values_as_the_original_patches",
        "tests/hooks/running/test_values_patch.py::test_stored_operations_that_no_longer_apply_are_skipped",
    ),
    "effective settings": _PACKED + "test_effective_settings_include_only_defaults_of_the_settings_schema",
}

DRIFT: Final[dict[str, Coverage]] = {
    "monitored once applied": (
        _MONITOR + "test_a_field_changed_by_another_process_is_corrected",
        _KEPT + "test_fields_changed_by_others_are_corrected_and_reported",
    ),
    "period and jitter": _APART + "test_comparisons_of_several_daemons_are_spread",
    "pause and resume": (
        "tests/cluster/test_drift_monitor_fights.py::test_drift_of_a_paused_owner_is_corrected_after_the_resume",
        _APART + "test_a_pause_outlives_the_rows_at_its_beginning",
    ),
    "resume at zero": _APART + "test_resuming_without_a_pause_changes_nothing",
    "skipped while not deployed": (
        _MONITOR + "test_our_own_write_seen_before_its_answer_is_not_drift",
        _MONITOR + "test_a_change_right_after_our_own_write_is_found",
        _KEPT + "test_a_release_whose_last_operation_failed_is_not_restored",
    ),
    "List kinds and nameless objects": (
        _OWNERSHIP + "test_lists_are_flattened",
        _OWNERSHIP + "test_documents_that_are_not_objects_are_refused",
    ),
    "discovery and scopes": (
        _OWNERSHIP + "test_the_namespace_is_set_for_namespaced_kinds_only",
        _MONITOR + "test_objects_of_a_kind_no_longer_served_are_handled",
    ),
    "bounded, a few at a time": (
        _MONITOR + "test_all_objects_are_compared_once_after_a_restart",
        _APART + "test_a_hanging_call_blocks_nothing_else",
    ),
    "absence is reported": (
        _MONITOR + "test_a_deleted_object_is_restored",
        _KEEPING + "test_a_deleted_object_is_restored",
    ),
    "checked at once on request": (
        _KEPT + "test_a_release_with_drift_is_not_unchanged",
        _KEEPING + "test_a_forced_run_reverts_a_users_revision",
    ),
}

_REFUSED: Final = _PURGE + "test_a_refused_deletion_is_retried_and_delays_no_other"
_DECLARED: Final = _PURGE + "test_only_objects_of_declared_kinds_are_deleted"

ORPHANS: Final[dict[str, Coverage]] = {
    "declared kinds": (_DECLARED, _PURGE + "test_an_invalid_declaration_is_skipped"),
    "bare version matches any group, group/version that one": _PURGE
    + "test_a_version_without_a_group_matches_every_group",
    "instance label": _DECLARED,
    "background propagation, UID precondition": _REFUSED,
    "kinds that are not served": _PURGE + "test_a_version_without_a_group_matches_every_group",
    "cluster-scoped kinds": _DECLARED,
    "being deleted": _REFUSED,
    "retained or foreign objects": _DECLARED,
    "NotFound and Conflict are success": _PURGE + "test_an_object_deleted_by_another_client_is_no_error",
    "other errors are collected and retried": _REFUSED,
}

_CASES: Final = _READINESS + "test_each_kind_has_its_readiness"
_ENDING: Final = _READINESS + "test_an_object_being_deleted_is_never_ready"

HEALTH: Final[dict[str, Coverage]] = {
    "Deployment: terminating": _ENDING,
    "Deployment: progress deadline exceeded": _CASES,
    "Deployment: generation": _CASES,
    "Deployment: paused": _CASES,
    "Deployment: updated": _CASES,
    "Deployment: old replicas": _CASES,
    "Deployment: available": _CASES,
    "StatefulSet: terminating": _ENDING,
    "StatefulSet: generation": _CASES,
    "StatefulSet: revisions": _CASES,
    "StatefulSet: ready": _CASES,
    "StatefulSet: updated": _CASES,
    "desired defaults to 1": _CASES,
    "package state": (
        _HEALTH + "test_the_health_of_a_release_has_one_state",
        _KEEPING + "test_a_failed_workload_is_reported_until_it_recovers",
    ),
    "Unknown forgets": (
        _HEALTHS + "test_a_deleted_object_is_reported",
        _HEALTHS + "test_nothing_is_reported_before_all_objects_were_listed",
    ),
    "callback outside locks": Elsewhere(
        "there is one thread and no lock; a listener is called with the current state, at a limited rate, and must not wait",
        (_HEALTHS + "test_reports_are_limited_in_rate",),
    ),
}

ENDPOINTS: Final[dict[str, Coverage]] = {
    "annotated Ingresses: hosts and paths": (
        _ENDPOINTS + "test_an_ingress_gives_its_hosts_and_paths",
        _SPEC + "test_endpoints_are_reported_even_if_nothing_is_applied",
    ),
    "value other than true is the description": (
        _ENDPOINTS + "test_only_annotated_objects_have_endpoints_and_the_annotation_describes_them"
    ),
}
