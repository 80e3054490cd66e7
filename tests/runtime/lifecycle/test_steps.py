"""Steps of operations are written to the journal, and steps that a killed process completed are skipped once."""

import pytest

from wharfinger.packages.rendering.resource_overrides import read_overrides
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.lifecycle.steps import Steps, fingerprint
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings


def steps(journal: Journal, operation: Operation = Operation.RECONCILIATION) -> Steps:
    return Steps(journal, "prod.web", operation)


def test_a_step_is_complete_when_its_body_succeeded() -> None:
    journal = Journal(None)
    one = steps(journal)
    one.begin("f")
    with one.taking("apply") as taken:
        assert one.done("apply") is None
        taken.result = "7"
    assert one.done("apply") == "7"


def test_a_step_that_failed_is_not_complete() -> None:
    one = steps(Journal(None))
    one.begin("f")
    with pytest.raises(KeyError), one.taking("apply"):
        raise KeyError
    assert one.done("apply") is None


def test_a_step_without_an_effect_is_not_journalled() -> None:
    journal = Journal(None)
    one = steps(journal)
    one.begin("f")
    with one.taking_if_started("apply") as taken:
        taken.result = "7"
    assert one.done("apply") is None
    with one.taking_if_started("apply") as taken:
        taken.start()
        assert [entry.in_flight for entry in journal.entries()] == [("apply",)]
        taken.result = "7"
    assert one.done("apply") == "7"


def test_an_attempt_in_the_same_process_restarts_unless_it_continues() -> None:
    journal = Journal(None)
    one = steps(journal)
    one.begin_once("f")
    with one.taking("hook"):
        pass
    one.begin_once("f")
    assert one.done("hook") == ""
    one.begin("f")
    assert one.done("hook") is None


def test_a_finished_operation_leaves_no_entries() -> None:
    journal = Journal(None)
    one = steps(journal)
    one.begin("f")
    with one.taking("hook"):
        pass
    one.finish()
    assert journal.entries() == ()


BASE = ("sha256:1", "prod", ResolvedSettings({"a": 1}), Directives())


@pytest.mark.parametrize(
    "other",
    [
        ("sha256:2", "prod", ResolvedSettings({"a": 1}), Directives()),
        ("sha256:1", "test", ResolvedSettings({"a": 1}), Directives()),
        ("sha256:1", "prod", ResolvedSettings({"a": 2}), Directives()),
        ("sha256:1", "prod", ResolvedSettings({"a": 1}), Directives(requested="now")),
        ("sha256:1", "prod", ResolvedSettings({"a": 1}), Directives(forced="now")),
        ("sha256:1", "prod", ResolvedSettings({"a": 1}), Directives(reset="now")),
        ("sha256:1", "prod", ResolvedSettings({"a": 1}), Directives(maintenance="NoResourceReconciliation")),
        ("sha256:1", "prod", ResolvedSettings({"a": 1}), Directives(settings_version=2)),
        (
            "sha256:1",
            "prod",
            ResolvedSettings({"a": 1}),
            Directives(overrides=read_overrides([{"kind": "Deployment", "name": "web", "replicas": 2}])),
        ),
    ],
)
def test_every_input_of_a_run_is_in_its_fingerprint(
    other: tuple[str, str, ResolvedSettings, Directives],
) -> None:
    assert fingerprint(*other) != fingerprint(*BASE)


def test_equal_desired_states_have_equal_fingerprints() -> None:
    assert fingerprint(
        "sha256:1", "prod", ResolvedSettings({"a": 1}, ("x",)), Directives(suspended=True)
    ) == fingerprint(*BASE)
