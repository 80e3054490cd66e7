"""The cases of spec/schedulers §B.15 and of the determinism rules of part F, each with the test that covers it.

A case without a test says why: it is about something that is not built here, or it is not done yet.
"""

from typing import Final

BROKEN: Final = "tests/offline/test_broken_trees.py::test_a_broken_tree_has_its_verdict_and_builds_the_rest"
KUSTOMIZATION: Final = "tests/offline/controllers/test_kustomization.py"
RELEASE: Final = "tests/offline/controllers/test_helm_release.py"
ORCHESTRATOR: Final = "tests/offline/orchestrator/test_orchestrator.py"
STORE: Final = "tests/offline/store/test_store.py"
NO_RESOURCE_SET: Final = "ResourceSets are not built"
NO_CHANGED_ONLY: Final = "changed-only builds are not done yet: `diff` builds both sides whole"
NO_PROMOTION: Final = "nothing is promoted (decision 0024); a missing object names the file that declares it"

COVERED: Final = {
    "orphans are detected": "tests/offline/orchestrator/test_collect.py::test_orphans_are_nodes_that_nothing_builds",
    "a fetcher after bootstrap is refused": "tests/offline/controllers/test_source.py::"
    "test_a_bucket_with_a_fetcher_of_the_caller",
    "a simple cluster": "tests/offline/test_commands.py::test_the_sample_tree",
    "dependsOn satisfied by a rendered Kustomization": f"{KUSTOMIZATION}::test_trees_of_trees",
    "two Kustomizations with the same path": f"{KUSTOMIZATION}::test_two_with_the_same_path_both_build",
    "a Kustomization that is commented out": f"{KUSTOMIZATION}::test_an_app_that_is_commented_out_is_not_built",
    "an explicit root": "tests/offline/discovery/test_tree.py::test_paths_of_kustomizations_are_followed_out_of_the_given_folder",
    "no anchor": "tests/offline/discovery/test_tree.py::test_without_an_anchor_the_path_is_the_root",
    "self-substitution is no deadlock": f"{KUSTOMIZATION}::test_a_variable_of_its_own_build_is_no_deadlock",
    "an absent ConfigMap fails loud": BROKEN,
    "a run that is cancelled before": f"{ORCHESTRATOR}::test_a_cancelled_run_judges_nothing",
    "the winner of a collision": f"{ORCHESTRATOR}::test_of_two_producers_the_first_wins_whatever_the_timing",
    "missing secrets may be left out": f"{RELEASE}::test_missing_secrets_may_be_left_out",
    "bootstrap is idempotent": f"{ORCHESTRATOR}::test_bootstrap_again_does_nothing",
    "bootstrap is repeated after a failure": f"{ORCHESTRATOR}::test_bootstrap_can_be_repeated_after_a_failure",
    "render twice is identical": f"{ORCHESTRATOR}::test_render_is_cached",
    "an error of render stops": f"{ORCHESTRATOR}::test_an_error_of_render_is_cached_and_stops",
    "two orchestrators do not meet": f"{ORCHESTRATOR}::test_two_orchestrators_can_share_their_tools",
    "a dangling cascade": BROKEN,
    "a chain of forty that render each other": f"{ORCHESTRATOR}::test_a_chain_of_forty_that_each_render_the_next",
    "recovered and primary failures": "tests/offline/orchestrator/test_bodies.py::test_failures_primary_and_derived",
    "generated values across producers": f"{RELEASE}::test_a_release_waits_for_others_and_for_what_they_render",
    "an unknown ordering target fails": BROKEN,
    "cycles": BROKEN,
    "a cycle is told by each member": "tests/offline/orchestrator/test_bodies.py::test_every_member_of_a_cycle_reports_it",
    "states by level of the gate": "tests/offline/controllers/test_gate.py::test_levels",
    "the store: equal additions": f"{STORE}::test_equal_additions_are_one_event_and_numbers_are_compared_by_value",
    "the store: refire": f"{STORE}::test_a_refire_resets_the_status_before_its_event",
    "the store: statuses": f"{STORE}::test_an_equal_status_is_no_event",
    "the store: order of lists": f"{STORE}::test_lists_are_sorted_and_of_one_kind_or_all",
    "the same bytes, three times, by 1, 2 and 4 workers": f"{ORCHESTRATOR}::"
    "test_the_sample_tree_is_built_to_the_same_bytes",
    "shuffled inputs": "tests/offline/test_broken_trees.py::test_a_verdict_does_not_depend_on_order_or_workers",
    "the difference to itself is empty": "tests/offline/test_diff_command.py::test_the_sample_tree_does_not_differ_from_itself",
    "structure equal to helm": "tests/offline/orchestrator/test_single.py::"
    "test_a_chart_of_the_corpus_is_built_as_helm_template_prints_it",
    "structure equal to kustomize": f"{KUSTOMIZATION}::test_a_plain_build_is_what_kustomize_gives",
}

NOT_COVERED: Final = {
    "attribution of a ResourceSet's children": NO_RESOURCE_SET,
    "deduplication of a ResourceSet": NO_RESOURCE_SET,
    "kinds that are left out": "there is no option for it yet",
    "a release skips before its source is pulled": "a missing login is a failure, and skips are not passed on",
    "change-only keeps the producer": NO_CHANGED_ONLY,
    "resources that leave a path": NO_CHANGED_ONLY,
    "excluded ordering targets": NO_CHANGED_ONLY,
    "files that Flux excludes": NO_CHANGED_ONLY,
    "promotion never admits siblings": NO_PROMOTION,
    "digest tracking": "FluxInstances are not read",
    "ten thousand incremental edges": "cycles are judged by the engine, whose own tests cover size",
    "readyExpr": "it is ignored: everything that was built is ready",
}
