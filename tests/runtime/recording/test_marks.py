"""Marks, which are recorded in place of objects, and the objects that stand in for them at a replay."""

from dataclasses import replace

import pytest

from tests.runtime.support.recorded import DEFINITION
from wharfinger.cluster.objects.drift_policy import DriftMode
from wharfinger.formats.json.value import JsonValue
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.recording.canonical import CanonicalError, unmasked
from wharfinger.runtime.recording.marks import MOST_OBJECTS, Marks, StandIn, form_of, plain, stand_in
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.resources.upgrade_policy import UpgradePolicy
from wharfinger.runtime.versions.rollback_note import RollbackNote


def read(form: JsonValue, known: dict[int, StandIn] | None = None) -> StandIn:
    assert isinstance(form, list)
    return stand_in(form[1:], known)


def test_an_object_is_written_with_attributes_only_once() -> None:
    marks, scope = Marks(), WorkScope("update of x")
    assert marks.form(scope, unmasked) == ["~", 1, "Scope", "update of x"]
    assert marks.form(scope, unmasked) == ["~", 1]
    assert marks.form(WorkScope("update of x"), unmasked) == ["~", 2, "Scope", "update of x"]
    marks.begin()
    assert marks.form(scope, unmasked) == ["~", 1, "Scope", "update of x"]


def test_numbers_of_objects_are_not_reused() -> None:
    marks, kept = Marks(), WorkScope("a")
    marks.form(kept, unmasked)
    others = [WorkScope("b") for _ in range(MOST_OBJECTS)]
    for other in others:
        marks.form(other, unmasked)
    marks.forget((kept,))
    assert marks.form(kept, unmasked) == ["~", 1]
    assert marks.form(others[0], unmasked) == ["~", MOST_OBJECTS + 2, "Scope", "b"]


def test_a_stand_in_has_the_attributes_that_the_machine_reads() -> None:
    marks, known = Marks(), dict[int, StandIn]()
    definition = read(marks.form(DEFINITION, unmasked), known)
    assert (definition.crds, definition.enabled_script) == (DEFINITION.crds, DEFINITION.enabled_script)
    assert read(marks.form(DEFINITION, unmasked), known) is definition
    settings = ResolvedSettings({"password": "hunter2"})
    form = marks.form(settings, unmasked)
    assert "hunter2" not in str(form)
    assert read(form).checksum == settings.checksum
    directives = read(marks.form(Directives(requested="now"), lambda _: "***1"))
    policy = directives.release_policy
    assert isinstance(policy, StandIn)
    assert (directives.requested, policy.deletion) == ("***1", DeletionPolicy.DELETE)
    drift = policy.drift
    assert isinstance(drift, StandIn)
    assert drift.mode is Directives().release_policy.drift.mode
    assert isinstance(drift.mode, DriftMode)
    assert directives.rolled_back is None
    assert isinstance(upgrade := directives.upgrade, StandIn)
    assert upgrade.rollback is False
    note = RollbackNote(3, "1.0.0", "2.0.0", "UpgradeFailed", "hunter2")
    wanted = Directives(asked="sha256:a", upgrade=UpgradePolicy(rollback=True), rolled_back=note)
    directives = read(marks.form(wanted, lambda text: text.replace("hunter2", "***1")))
    assert (directives.asked, directives.rolled_back) == ("sha256:a", replace(note, message="***1"))
    assert isinstance(upgrade := directives.upgrade, StandIn)
    assert upgrade.rollback is True
    with pytest.raises(AttributeError, match="not recorded"):
        _ = definition.chart
    assert not read(marks.form(WorkScope("a"), unmasked)).cancelled


def test_a_mark_is_written_again_without_attributes() -> None:
    assert form_of(StandIn(4, "Scope", ("a",))) == ["~", 4]
    with pytest.raises(CanonicalError, match="object"):
        form_of(object())
    assert plain({"a": [1, ["~", 3, "Scope", "x"]], "b": None}) == {"a": [1, ["~", 3]], "b": None}


@pytest.mark.parametrize("rest", [[], ["x"], [1, "Scope"], [1, 2]])
def test_invalid_forms_are_refused(rest: list[JsonValue]) -> None:
    with pytest.raises(CanonicalError):
        stand_in(rest, {})


def test_an_object_that_was_not_mentioned_is_refused() -> None:
    with pytest.raises(CanonicalError, match="found 7"):
        stand_in([7], {})
    assert stand_in([7], None).number == 7
