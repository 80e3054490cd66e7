"""The 15 conformance cases of the hook contract (spec hook-protocol §6.5), and the tests of each case.

The hooks and situations in the tests were written for this project, from the facts in the sections of the specification to
which its §6.3 and §6.4 refer. If the daemon differs from the peers on purpose, the docstring of the test says so, and
``docs/compatibility.md`` informs users.
"""

from dataclasses import dataclass
from typing import Final

_HOOKS: Final = "tests/hooks/"
_QUEUE: Final = "tests/queue/test_service.py::"
_PATCHES: Final = _HOOKS + "running/test_object_patches.py::"
_VALUES: Final = _HOOKS + "running/test_values_patch.py::"


@dataclass(frozen=True, slots=True)
class Case:
    """A conformance case. Its tests are all tests in ``modules`` (names of files, which may contain ``*``), and those tests of
    other modules that ``tests`` names.
    """

    title: str
    modules: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


def _module(number: int, name: str, part: str = "hooks") -> tuple[str, ...]:
    return (f"tests/{part}/conformance/test_case_{number:02}_{name}.py",)


CASES: Final[dict[int, Case]] = {
    1: Case("config acceptance", _module(1, "config")),
    2: Case("discovery and start-up order", _module(2, "discovery")),
    3: Case(
        "context JSON",
        _module(3, "contexts"),
        (
            _HOOKS + "running/test_run_folder.py::test_inputs_are_compact_json_with_sorted_keys_and_a_line_break",
            _HOOKS
            + "running/test_process_runner.py::test_every_variable_of_the_contract_names_a_private_file_of_the_run",
        ),
    ),
    4: Case(
        "scenario generator",
        _module(4, "scenarios"),
        ("tests/runtime/conformance/test_case_14_converge.py::test_hooks_of_the_start_run_in_order",),
    ),
    5: Case(
        "combine",
        _module(5, "combining"),
        ("tests/runtime/tasks/test_event_tasks.py::test_a_version_0_hook_gets_each_event_in_a_separate_run",),
    ),
    6: Case(
        "queue, compaction, backoff",
        _module(6, "queues"),
        (
            _QUEUE + "test_tasks_of_a_queue_run_in_order_and_each_callback_is_called",
            _QUEUE + "test_retries_run_at_exact_times_and_delay_later_tasks",
            _QUEUE + "test_tasks_of_fifty_concurrent_callers_keep_their_order",
            "tests/queue/test_backoff.py::test_a_delay_is_positive_and_never_above_the_cap",
        ),
    ),
    7: Case("monitor", _module(7, "monitors")),
    8: Case(
        "object patches",
        _module(8, "object_patches"),
        (
            _PATCHES + "test_create_or_update_retries_after_a_conflict",
            _PATCHES + "test_repeated_conflicts_are_a_transient_failure",
            _PATCHES + "test_a_delete_waits_until_the_object_is_deleted",
            _PATCHES + "test_a_delete_times_out",
            _PATCHES + "test_deletions_set_the_propagation_policy",
        ),
    ),
    9: Case(
        "jq",
        _module(9, "jq"),
        (
            "tests/formats/jq/test_worker.py::test_filters_return_their_results",
            "tests/formats/jq/test_worker.py::test_failing_filters_return_a_refusal",
        ),
    ),
    10: Case(
        "admission and conversion",
        _module(10, "webhooks"),
        (
            "tests/hooks/webhooks/test_chains.py::test_shortest_conversion_chain_is_found",
            "tests/runtime/admission/test_hook_reviewer.py::test_hooks_validate_mutate_and_convert_objects",
            "tests/runtime/admission/test_hook_reviewer.py::test_without_an_answer_the_failure_policy_decides",
        ),
    ),
    11: Case("operator surface: logs, dumps", _module(11, "logs_and_dumps")),
    12: Case("module enablement", _module(12, "*", part="*")),
    13: Case(
        "module and global hook values",
        _module(13, "values"),
        (
            _VALUES + "test_stored_patches_equal_the_contract_example",
            "tests/runtime/tasks/test_hook_runs.py::test_a_patch_that_the_schema_refuses_fails_the_hook_and_changes_nothing",
        ),
    ),
    14: Case(
        "converge sequence",
        _module(14, "converge", part="runtime"),
        (
            "tests/runtime/core/test_global_rounds.py::test_global_hooks_run_before_and_after_all_packages",
            "tests/runtime/core/test_global_rounds.py::test_afterall_hooks_that_never_settle_are_reported",
            "tests/runtime/test_rounds_interrupted.py::test_a_restart_makes_one_round",
        ),
    ),
    15: Case("values and schemas", _module(15, "*", part="*")),
}

GOLDEN: Final[dict[str, str]] = {
    "102": "test_hook_with_two_namespace_bindings_handles_both",
    "204": "test_a_validating_hook_allows_and_denies",
    "206": "test_a_mutating_hook_answers_with_a_patch",
    "210": "test_a_conversion_hook_converts_all_objects",
    "220": "test_rate_limited_hook_receives_all_waiting_contexts",
}
"""The tests in ``test_golden_hooks.py`` that cover the observed results of §6.4a, by the observed example."""
