"""Which test covers which case of applying releases and keeping them: Helm, drift, orphans, health, endpoints (spec/runtime §8).

As in `tests/spec_cases.py`; the names of the cases are those of `tests/spec_names.py`, and `tests/test_spec_cases.py` holds that
none is missing. What §12 lists of these by name is in `tests/spec_cases.py`.
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
        _SPEC + "test_objects_and_records_say_whose_release_they_are_of",
        "tests/runtime/resources/test_identity.py::test_a_release_has_at_most_53_characters",
    ),
    "labels and annotations of resources": (
        _SPEC + "test_objects_and_records_say_whose_release_they_are_of",
        _OPERATIONS + "test_under_maintenance_what_people_change_is_left_to_them",
        _OWNERSHIP + "test_owned_marks_a_copy",
    ),
    "labels of the release": (
        "tests/cluster/records/test_release.py::test_helms_own_labels_are_not_user_labels",
        _SPEC + "test_maintenance_is_one_revision_where_it_begins_and_one_where_it_ends",
    ),
    "operation timeout": Elsewhere(
        "an operation ends when somebody wants another, not by a clock: each request and each attempt has its own end",
        (
            _UPGRADE + "test_superseding_ends_at_once_and_the_next_goes_on",
            _UPGRADE + "test_a_request_that_hangs_holds_no_one_who_comes_after",
            "tests/cluster/reconciler/test_weaknesses.py::test_6_an_operation_has_a_deadline",
        ),
    ),
}

UPGRADE: Final[dict[str, Coverage]] = {
    "1 is it a chart": (
        "tests/runtime/tasks/test_run_tasks.py::test_a_package_without_a_chart_has_hooks_only",
        "tests/packages/rendering/test_helm_renderer.py::test_no_chart_at_all",
    ),
    "2 under maintenance a marked, deployed release is left": (
        _OPERATIONS + "test_under_maintenance_what_people_change_is_left_to_them"
    ),
    "2 pending, failed or unmarked is applied once": (
        _SPEC + "test_under_maintenance_what_is_not_there_to_its_end_is_applied_until_it_is"
    ),
    "3 endpoints are collected even if nothing is applied": (
        _SPEC + "test_where_it_can_be_reached_is_told_whether_or_not_anything_is_applied"
    ),
    "4 checksum: maintenance is one upgrade in, one out": (
        _SPEC + "test_maintenance_is_one_revision_where_it_begins_and_one_where_it_ends"
    ),
    "5 needed: no release": _ENGINE + "test_install",
    "5 needed: not deployed": _ENGINE + "test_a_failed_upgrade_keeps_the_deployed_record_and_the_next_one_cleans_up",
    "5 needed: a foreign release": _KEPT + "test_what_helm_installed_is_applied_though_it_reads_the_same",
    "5 needed: another checksum": (
        _ENGINE + "test_what_makes_a_revision",
        "tests/cluster/releases/test_request.py::test_any_changed_input_changes_the_fingerprint",
    ),
    "5 needed: a resource is absent": (
        _ENGINE + "test_what_is_deleted_comes_back_by_itself",
        _ENGINE + "test_after_a_restart_the_same_again_is_looked_at_and_only_what_is_missing_is_written",
    ),
    "6 not needed: looked after all the same": (
        _KEPT + "test_what_is_restored_is_kept_as_it_was",
        _KEPT + "test_while_something_drifts_nothing_is_taken_for_unchanged",
    ),
    "6 needed: progress is told": (
        "tests/cluster/test_release_words.py::test_progress_lists_only_unfinished_objects_of_the_release",
        "tests/runtime/status/test_transitions.py::test_progress_is_told_while_something_is_under_way",
    ),
    "reasons": (
        "tests/runtime/status/test_failures.py::test_every_expected_error_has_its_word",
        "tests/runtime/status/test_reasons.py::test_a_word_is_its_text_and_is_found_by_it",
    ),
}

REMOVAL: Final[dict[str, Coverage]] = {
    "Delete uninstalls": (
        _UNINSTALL + "test_uninstall",
        "tests/runtime/core/test_runtime.py::test_a_removal_leaves_nothing_and_the_name_can_be_used_again",
    ),
    "Render leaves the release alone": (
        "tests/runtime/tasks/test_rendering.py::test_rendering_for_who_asks_leaves_the_release_alone"
    ),
    "GetConversionWebhooks": (
        _CRDS + "test_conversion_webhooks_are_there_before_the_release_and_belong_to_it",
        _CRDS + "test_conversion_webhooks_of_a_release_that_never_came_are_removed",
    ),
    "Cleanup deletes releases that nobody keeps": (
        _REMOVAL + "test_the_engine_prunes_what_no_one_knows_of_any_more",
        _REMOVAL + "test_pruning_takes_only_what_is_ours_of_whole_releases",
        _KEPT + "test_nothing_is_pruned_before_all_that_is_expected_came",
    ),
    "Cleanup goes on after failures": (
        "tests/cluster/reconciler/test_weaknesses.py::"
        "test_8_a_prune_that_fails_is_tried_again_soon_and_one_before_the_table_is_filled_is_not_lost"
    ),
}

VALUES: Final[dict[str, Coverage]] = {
    "context of an application": _PACKED + "test_what_templates_of_an_application_see",
    "context of a module": _PACKED + "test_what_templates_of_a_module_see",
    "layers": (_PACKED + "test_layers", "tests/runtime/tasks/test_values.py::test_the_layers_in_their_order"),
    "defaults only fill what is absent": (
        _PACKED + "test_layers",
        _PACKED + "test_without_schemas_there_are_no_defaults",
    ),
    "patches are compacted": (
        "tests/hooks/running/test_values_patch.py::test_compacted_patches_give_what_the_patches_gave",
        "tests/hooks/running/test_values_patch.py::test_what_fits_no_more_is_passed_over",
    ),
    "effective settings": _PACKED + "test_effective_settings_have_defaults_and_nothing_of_the_values",
}

DRIFT: Final[dict[str, Coverage]] = {
    "looked after once applied": (
        _MONITOR + "test_a_field_that_another_process_changes_is_taken_back",
        _KEPT + "test_fields_that_others_change_are_taken_back_and_told",
    ),
    "period and jitter": _APART + "test_comparisons_of_many_daemons_do_not_fall_together",
    "pause and resume": (
        "tests/cluster/test_drift_monitor_fights.py::test_drift_of_a_paused_owner_is_corrected_after_the_resume",
        _APART + "test_a_pause_outlives_the_rows_that_it_began_with",
    ),
    "resume at zero": _APART + "test_to_go_on_where_nothing_was_paused_is_nothing",
    "skipped while not deployed": (
        _MONITOR + "test_our_own_write_seen_before_its_answer",
        _MONITOR + "test_a_change_right_after_our_own_write_is_not_lost",
        _KEPT + "test_a_release_whose_last_operation_failed_is_not_restored",
    ),
    "List kinds and nameless objects": (
        _OWNERSHIP + "test_lists_are_taken_apart",
        _OWNERSHIP + "test_documents_that_are_no_objects",
    ),
    "discovery and scopes": (_OWNERSHIP + "test_placed", _MONITOR + "test_a_kind_that_is_no_longer_served"),
    "bounded, a few at a time": (
        _MONITOR + "test_after_a_restart_everything_is_compared_once",
        _APART + "test_while_a_call_hangs_everything_else_goes_on",
    ),
    "absent is told": (
        _MONITOR + "test_what_is_deleted_comes_back",
        _KEEPING + "test_an_object_that_another_process_deletes_is_there_again",
    ),
    "checked at once when asked": (
        _KEPT + "test_while_something_drifts_nothing_is_taken_for_unchanged",
        _KEEPING + "test_a_forced_look_takes_back_what_a_user_did",
    ),
}

_REFUSED: Final = _PURGE + "test_what_the_server_refuses_holds_up_nothing_else_and_is_tried_again"
_DECLARED: Final = _PURGE + "test_declared_kinds_are_deleted_and_nothing_else"

ORPHANS: Final[dict[str, Coverage]] = {
    "declared kinds": (_DECLARED, _PURGE + "test_a_declaration_that_cannot_be_read_is_passed_over"),
    "bare version matches any group, group/version that one": _PURGE + "test_a_bare_version_is_that_of_any_group",
    "instance label": _DECLARED,
    "background propagation, UID precondition": _REFUSED,
    "kinds that are not served": _PURGE + "test_a_bare_version_is_that_of_any_group",
    "cluster-scoped kinds": _DECLARED,
    "being deleted": _REFUSED,
    "kept or anyone's": _DECLARED,
    "NotFound and Conflict are success": _PURGE + "test_what_another_one_took_away_is_gone",
    "other errors are collected and retried": _REFUSED,
}

_CASES: Final = _READINESS + "test_cases"
_ENDING: Final = _READINESS + "test_an_object_on_its_way_out_is_never_ready"

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
        _HEALTH + "test_a_release_in_one_word",
        _KEEPING + "test_what_breaks_down_is_told_until_it_is_back",
    ),
    "Unknown forgets": (
        _HEALTHS + "test_an_object_that_goes_later_is_told",
        _HEALTHS + "test_nothing_is_told_before_everything_was_looked_up",
    ),
    "callback outside locks": Elsewhere(
        "one thread: there are no locks; a listener is called with what is the case, at most so often, and must not wait",
        (_HEALTHS + "test_the_listener_is_told_at_most_so_often",),
    ),
}

ENDPOINTS: Final[dict[str, Coverage]] = {
    "annotated Ingresses: hosts and paths": (
        _ENDPOINTS + "test_an_ingress_gives_its_hosts_and_paths",
        _SPEC + "test_where_it_can_be_reached_is_told_whether_or_not_anything_is_applied",
    ),
    "value other than true is the description": (
        _ENDPOINTS + "test_only_what_is_marked_is_told_and_the_mark_describes_it"
    ),
}
