"""The facts about a package: each is about one subject, and no event is one."""

from typing import get_args

import pytest

from wharfinger.runtime.package import events, facts

SUBJECTS = {name: get_args(kind) for name, kind in vars(facts).items() if name.endswith("Fact") and name != "Fact"}
CLASSES = [
    each
    for each in vars(facts).values()
    if isinstance(each, type) and each.__module__ == facts.__name__ and not each.__name__.endswith("Base")
]


@pytest.mark.parametrize("fact", CLASSES, ids=lambda fact: fact.__name__)
def test_a_fact_is_about_one_subject(fact: type) -> None:
    assert fact in get_args(facts.Fact)
    subjects = [name for name, members in SUBJECTS.items() if fact in members]
    assert len(subjects) == 1 or (not subjects and fact.__name__ in {"StatusSet", "Warned", "Renamed"})
    # The machine recognizes the subject by the base.
    assert all(issubclass(fact, vars(facts)[subject.replace("Fact", "Base")]) for subject in subjects)


def test_no_fact_is_an_event() -> None:
    assert not set(get_args(facts.Fact)) & set(get_args(events.Event))
