"""The cases of spec/schedulers §B.15 and of the determinism rules of part F, each with the tests that cover it.

A test is given as ``path::function``, and one case of a parametrized test as ``path::function[id]``. A case without a test has
a reason instead: the feature does not exist here, or works in another way.
"""

from typing import Final

_BROKEN: Final = "tests/offline/test_broken_trees.py::test_failures_of_a_broken_tree_are_reported_and_the_rest_is_built"
_KUSTOMIZATION: Final = "tests/offline/controllers/test_kustomization.py"
_RELEASE: Final = "tests/offline/controllers/test_helm_release.py"
_SOURCE: Final = "tests/offline/controllers/test_source.py"
_BUILT_FILES: Final = "tests/offline/controllers/test_built_files.py"
_ORCHESTRATOR: Final = "tests/offline/orchestrator/test_orchestrator.py"
_BODIES: Final = "tests/offline/orchestrator/test_bodies.py"
_COLLECT: Final = "tests/offline/orchestrator/test_collect.py"
_SIDES: Final = "tests/offline/orchestrator/test_sides.py"
_TREE: Final = "tests/offline/discovery/test_tree.py"
_STORE: Final = "tests/offline/store/test_store.py"
_RESOURCE_SET: Final = "tests/offline/controllers/test_resource_set.py"
_NO_PROMOTION: Final = "nothing is promoted (decision 0024); a missing object names the file that declares it"

COVERED: Final = {
    "orphans: a node that no file lists": f"{_COLLECT}::test_declared_nodes_without_a_builder_are_orphans",
    "orphans: a child of a failed parent is not an orphan": f"{_BUILT_FILES}::"
    "test_a_release_of_a_failed_build_blocks_and_is_not_an_orphan",
    "orphans: a node built in another namespace is not an orphan": f"{_COLLECT}::"
    "test_a_node_that_is_built_in_another_namespace_is_not_an_orphan",
    "a fetcher after bootstrap is refused": f"{_SOURCE}::test_a_bucket_is_fetched_by_the_fetcher_of_the_caller",
    "a simple cluster": "tests/offline/test_commands.py::test_the_sample_tree_is_built_reproducibly",
    "dependsOn satisfied by a rendered Kustomization": f"{_KUSTOMIZATION}::test_nested_kustomizations_are_built",
    "two Kustomizations with the same path": f"{_KUSTOMIZATION}::test_two_kustomizations_with_the_same_path_are_both_built",
    "a Kustomization that is commented out": f"{_KUSTOMIZATION}::test_a_kustomization_that_is_commented_out_is_not_built",
    "an explicit root": f"{_TREE}::test_paths_of_kustomizations_are_followed_out_of_the_given_folder",
    "no anchor": f"{_TREE}::test_a_path_without_a_bootstrap_is_the_root",
    "self-substitution does not deadlock": f"{_KUSTOMIZATION}::test_a_variable_from_its_own_build_does_not_deadlock",
    "an absent ConfigMap is a failure": f"{_BROKEN}[missing values]",
    "a run that is cancelled before it starts": f"{_ORCHESTRATOR}::test_a_cancelled_run_has_no_verdicts",
    "the winner of a collision, in both orders": f"{_ORCHESTRATOR}::test_the_first_of_two_producers_always_wins",
    "missing secrets can be allowed": f"{_RELEASE}::test_missing_secrets_fail_the_release_unless_allowed",
    "a typed listener": f"{_STORE}::test_no_event_follows_the_end_of_a_subscription",
    "bootstrap is idempotent": f"{_ORCHESTRATOR}::test_a_second_bootstrap_changes_nothing",
    "the filter of an orchestrator": f"{_ORCHESTRATOR}::test_render_returns_only_objects_chosen_by_filters",
    "an unknown name is an error that names the nearest one": "tests/offline/test_filters.py::"
    "test_a_filter_without_matches_is_refused_with_similar_values",
    "a name that exists and failed is not unknown": "tests/offline/test_filters.py::"
    "test_only_chosen_objects_and_their_failures_are_printed",
    "bootstrap can be repeated after a failure": f"{_ORCHESTRATOR}::test_bootstrap_can_be_repeated_after_a_failure",
    "a second render returns the same result": f"{_ORCHESTRATOR}::test_render_is_cached",
    "an error of render stops the orchestrator": f"{_ORCHESTRATOR}::test_an_error_of_render_is_cached_and_stops_the_orchestrator",
    "two trees are independent": f"{_ORCHESTRATOR}::test_two_orchestrators_can_share_their_tools",
    "a dependency that is made by another repository": f"{_SOURCE}::test_a_source_of_another_repository_is_fetched",
    "a dangling cascade": f"{_BROKEN}[a dangling chain fails at its root]",
    "a chain of forty that render each other, to the same bytes by 1, 2 and 4 workers": f"{_ORCHESTRATOR}::"
    "test_a_chain_of_forty_kustomizations_is_built",
    "recovered and primary failures": f"{_BODIES}::test_primary_and_derived_failures_are_distinguished",
    "a listener that refires on Ready": f"{_ORCHESTRATOR}::test_a_node_that_is_refired_too_often_fails",
    "generated values have one name, by 2 and 4 workers": f"{_RELEASE}::"
    "test_a_release_reads_values_from_a_generated_config_map",
    "a gate on the parent": f"{_BUILT_FILES}::test_a_release_of_a_failed_build_blocks_and_is_not_an_orphan",
    "change-only: the producer of an object that a change needs is built": f"{_SIDES}::"
    "test_changed_releases_are_rendered_and_compared_as_in_a_whole_build",
    "change-only: an omitted release satisfies an ordering": f"{_SIDES}::"
    "test_changed_releases_are_rendered_and_compared_as_in_a_whole_build",
    "change-only: a failed release blocks its dependents": f"{_SIDES}::test_a_failed_changed_release_blocks_its_dependents",
    "change-only: objects that are not compared are listed": "tests/offline/test_diff_command.py::"
    "test_releases_of_unfetched_charts_are_listed_as_not_compared",
    "change-only: a source that is not needed is not fetched": f"{_SIDES}::"
    "test_sources_are_fetched_only_for_changed_releases",
    "an unknown ordering target fails": f"{_BROKEN}[a typo in dependsOn]",
    "cycles": f"{_BROKEN}[a cycle]",
    "cycles of releases": f"{_BROKEN}[a cycle of releases]",
    "cycles that a build causes": f"{_BROKEN}[a cycle that a build brings about]",
    "cycles across kinds": f"{_BROKEN}[two that wait for files of each other]",
    "each member of a cycle reports it": f"{_BODIES}::test_every_member_of_a_cycle_reports_it",
    "states by level of the gate": "tests/offline/controllers/test_gate.py::test_unmet_dependencies_block_or_fail_by_level",
    "the store: equal additions": f"{_STORE}::test_equal_additions_cause_one_event",
    "the store: refire": f"{_STORE}::test_a_refire_resets_the_status_before_the_event",
    "the store: statuses": f"{_STORE}::test_an_equal_status_causes_no_event",
    "the store: order of lists": f"{_STORE}::test_lists_are_sorted_and_can_be_limited_to_a_kind",
    "children of a ResourceSet": f"{_RESOURCE_SET}::test_objects_of_sets_become_nodes_in_turn",
    "deduplication of a ResourceSet": "tests/offline/building/test_resource_templates.py::"
    "test_resources_precede_the_template_and_duplicates_are_dropped",
    "a change during a run is not lost": "tests/runtime/fixpoint/test_machine.py::"
    "test_a_change_of_a_read_id_during_a_run_causes_a_charged_run",
    "a chain of forty selectors": f"{_RESOURCE_SET}::test_a_chain_of_forty_selections_has_the_same_bytes_each_time",
    "readyExpr": "tests/offline/controllers/test_readiness.py::test_ready_expressions_decide_builds_in_a_tree",
    "the same bytes, three times, by 1, 2 and 4 workers": f"{_ORCHESTRATOR}::"
    "test_the_sample_tree_is_always_built_to_the_same_bytes",
    "the same bytes from a registry and repositories, three times, by 1, 2 and 4 workers": "tests/offline/test_sample_tree.py::"
    "test_repeated_builds_have_the_same_bytes",
    "a chain across kinds fails at its root": "tests/offline/test_sample_tree.py::"
    "test_only_dependents_of_an_unreachable_registry_fail",
    "shuffled inputs: paths": "tests/offline/test_several_paths.py::test_several_paths_are_built_as_one_tree_in_any_order",
    "shuffled inputs: objects": f"{_ORCHESTRATOR}::test_results_do_not_depend_on_the_distribution_of_documents_over_files",
    "shuffled inputs: verdicts": "tests/offline/test_broken_trees.py::test_verdicts_do_not_depend_on_order_or_workers",
    "a tree does not differ from itself": "tests/offline/test_diff_command.py::test_the_sample_tree_does_not_differ_from_itself",
    "structure equal to helm": "tests/offline/orchestrator/test_single.py::"
    "test_a_chart_of_the_corpus_is_built_as_helm_template_prints_it",
    "structure equal to kustomize": f"{_KUSTOMIZATION}::test_a_plain_build_equals_that_of_kustomize",
    "structure equal to an overlay of kustomize": f"{_KUSTOMIZATION}::test_spec_changes_are_built_as_the_equal_overlay",
}

NOT_COVERED: Final = {
    "kinds that are left out": "`--filter` selects objects; there is no option that excludes objects",
    "options that the caller modifies later": "options are immutable values",
    "ten cases in which a ResourceSet is unchanged": "the engine compares what a node emits, alike for all kinds",
    "additive expressions of readiness": "off by default in Flux, and not offered here",
    "a release skips before its source is pulled": "a missing login is a failure, and skips are not passed on",
    "change-only: files that leave a path": "`diff` compares the inputs of releases, and builds every Kustomization",
    "change-only: files that Flux excludes": "no file selects anything, so a change of such files is no difference",
    "promotion never admits siblings": _NO_PROMOTION,
    "cycles: cleared and refired": "cycles are found by the engine, whose tests remove edges; a run reads its files once",
    "digest tracking": "of a FluxInstance only the sync is read; the distribution that it installs is not",
    "ten thousand incremental edges": "cycles are judged by the engine, whose own tests cover size",
}
