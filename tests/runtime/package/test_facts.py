"""The classes of facts about a package. Each class belongs to one subject, except for three classes that belong to none. Only
the classes of findings are both facts and events.
"""

from typing import get_args

import pytest

from wharfinger.runtime.package import events, facts, findings

SUBJECTS = {name: get_args(kind) for name, kind in vars(facts).items() if name.endswith("Fact") and name != "Fact"}
CLASSES = get_args(facts.Fact)


@pytest.mark.parametrize("fact", CLASSES, ids=lambda fact: fact.__name__)
def test_a_fact_is_about_one_subject(fact: type) -> None:
    subjects = [name for name, members in SUBJECTS.items() if fact in members]
    assert len(subjects) == 1 or (not subjects and fact.__name__ in {"StatusSet", "Warned", "Renamed"})
    # The machine recognizes the subject by the base class.
    assert all(issubclass(fact, vars(findings)[subject.replace("Fact", "Base")]) for subject in subjects)


def test_every_fact_of_the_module_is_in_the_union() -> None:
    own = {each for each in vars(facts).values() if isinstance(each, type) and each.__module__ == facts.__name__}
    assert own <= set(CLASSES)
    assert len(own) > 20


def test_only_findings_are_both_facts_and_events() -> None:
    assert set(CLASSES) & set(get_args(events.Event)) == set(get_args(findings.Finding))
