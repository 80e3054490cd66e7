"""Backlogs of changes. Up to its limit, a backlog keeps all changes. Beyond the limit, it keeps a shorter series with the same
effect.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.hooks.config.bindings import WatchVerb
from wharfinger.hooks.watching.monitor_backlog import Backlog, Change, reduced
from wharfinger.kube.resource import ObjectKey, ResourceType

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
ADDED, MODIFIED, DELETED = WatchVerb.ADDED, WatchVerb.MODIFIED, WatchVerb.DELETED


def change(verb: WatchVerb, name: str = "a", payload: int = 0) -> Change[int]:
    return Change(verb, ObjectKey(POD, "prod", name), payload)


def verbs(changes: list[Change[int]]) -> list[tuple[str, str, int]]:
    return [(str(one.verb), one.key.name, one.payload) for one in changes]


def every_verb(_change: Change[int]) -> frozenset[WatchVerb]:
    return frozenset(WatchVerb)


def test_changes_up_to_the_limit_are_retained_in_order() -> None:
    backlog: Backlog[int] = Backlog(limit=4)
    for number in range(4):
        backlog.add(change(MODIFIED, payload=number))
    assert len(backlog) == 4
    assert backlog.take().payload == 0
    assert [one.payload for one in backlog.take_all()] == [1, 2, 3]
    assert (len(backlog), backlog.reduced) == (0, 0)
    assert backlog.take_all() == ()
    with pytest.raises(IndexError):
        backlog.take()


def test_beyond_the_limit_two_changes_per_object_remain() -> None:
    backlog: Backlog[int] = Backlog(limit=4)
    for number in range(5):
        backlog.add(change(MODIFIED, payload=number))
    assert [one.payload for one in backlog.take_all()] == [0, 4]
    assert backlog.reduced == 3


def test_objects_deleted_for_good_use_no_space() -> None:
    backlog: Backlog[int] = Backlog(limit=10)
    longest = 0
    for number in range(10_000):
        backlog.add(change(ADDED, f"job-{number}"))
        backlog.add(change(DELETED, f"job-{number}"))
        longest = max(longest, len(backlog))
    assert longest <= 11


def test_constantly_changing_object_uses_bounded_space() -> None:
    backlog: Backlog[int] = Backlog(limit=10)
    for number in range(10_000):
        backlog.add(change(MODIFIED, payload=number))
        assert len(backlog) <= 10
    assert backlog.take_all()[-1].payload == 9_999


def test_irreducible_backlog_is_not_reduced_again_on_each_change() -> None:
    backlog: Backlog[int] = Backlog(limit=10)
    for number in range(10_000):
        backlog.add(change(ADDED, f"pod-{number}"))
    assert (len(backlog), backlog.reduced) == (10_000, 0)
    assert backlog._reduce_at >= 10_000
    while len(backlog):
        backlog.take()
    assert backlog._reduce_at == 10


@pytest.mark.parametrize(
    ("story", "left"),
    [
        ([ADDED, MODIFIED], [(ADDED, 0), (MODIFIED, 1)]),
        ([ADDED, MODIFIED, MODIFIED], [(ADDED, 0), (MODIFIED, 2)]),
        ([ADDED, MODIFIED, DELETED], []),
        ([ADDED, DELETED, ADDED], [(ADDED, 0), (MODIFIED, 2)]),
        ([MODIFIED, DELETED], [(DELETED, 1)]),
        ([MODIFIED, DELETED, ADDED], [(MODIFIED, 0), (MODIFIED, 2)]),
        ([DELETED, ADDED, MODIFIED], [(DELETED, 0), (ADDED, 2)]),
        ([DELETED, ADDED, DELETED], [(DELETED, 2)]),
        ([DELETED], [(DELETED, 0)]),
    ],
)
def test_changes_of_one_object_are_reduced_to_at_most_two(
    story: list[WatchVerb], left: list[tuple[WatchVerb, int]]
) -> None:
    changes = [change(verb, payload=number) for number, verb in enumerate(story)]
    assert [(one.verb, one.payload) for one in reduced(changes, every_verb)] == left


@pytest.mark.parametrize(
    ("told", "story", "left"),
    [
        ({ADDED}, [ADDED, ADDED, ADDED], [(ADDED, 2)]),
        ({ADDED, DELETED}, [ADDED, DELETED, ADDED], [(ADDED, 2)]),
        ({ADDED, DELETED}, [DELETED, ADDED, DELETED, ADDED], [(DELETED, 0), (ADDED, 3)]),
        ({ADDED, DELETED}, [ADDED, DELETED], []),
        ({MODIFIED, DELETED}, [DELETED, MODIFIED, MODIFIED], [(DELETED, 0), (MODIFIED, 2)]),
        ({MODIFIED, DELETED}, [MODIFIED, DELETED], [(DELETED, 1)]),
        ({MODIFIED}, [MODIFIED, MODIFIED, MODIFIED], [(MODIFIED, 0), (MODIFIED, 2)]),
        ({ADDED, MODIFIED}, [ADDED, ADDED], [(ADDED, 0), (MODIFIED, 1)]),
        ({DELETED}, [DELETED, DELETED], [(DELETED, 1)]),
    ],
)
def test_reduction_for_selected_verbs_gives_only_those_verbs(
    told: set[WatchVerb], story: list[WatchVerb], left: list[tuple[WatchVerb, int]]
) -> None:
    backlog: Backlog[int] = Backlog(limit=len(story) - 1, verbs=frozenset(told))
    for number, verb in enumerate(story):
        backlog.add(change(verb, payload=number))
    assert [(one.verb, one.payload) for one in backlog.take_all()] == left


def test_reduction_preserves_the_order_of_objects() -> None:
    story = [change(ADDED, "b"), change(MODIFIED, "a", 1), change(MODIFIED, "b", 2), change(MODIFIED, "a", 3)]
    story += [change(MODIFIED, "b", 4)]
    assert verbs(reduced(story, every_verb)) == [
        ("Added", "b", 0),
        ("Modified", "a", 1),
        ("Modified", "a", 3),
        ("Modified", "b", 4),
    ]


@given(st.sets(st.sampled_from("abc")), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_reduced_stories_are_consistent_short_and_end_the_same(there: set[str], steps: list[tuple[str, bool]]) -> None:
    """Each step puts or deletes an object. Deleting a missing object is no change."""
    story: list[Change[int]] = []
    now = dict.fromkeys(there, -1)
    for number, (name, put) in enumerate(steps):
        if put:
            story.append(change(MODIFIED if name in now else ADDED, name, number))
            now[name] = number
        elif now.pop(name, None) is not None:
            story.append(change(DELETED, name, number))
    left = reduced(story, every_verb)
    told = dict.fromkeys(there, -1)
    for one in left:
        assert (one.key.name in told) == (one.verb is not ADDED)
        if one.verb is DELETED:
            del told[one.key.name]
        else:
            told[one.key.name] = one.payload
    assert told == now
    assert len(left) <= 2 * len(there | now.keys())
    assert [one.payload for one in left] == sorted(one.payload for one in left)
