"""Inboxes, in which events and ticks (occurrences) wait for a hook. The tests check which occurrences a run gets, that they
wait again after a failed run, and how an inbox that exceeds its limit is reduced.
"""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hooks.support.hooked import hook
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.hooks.config.bindings import KubernetesBinding, WatchVerb
from wharfinger.hooks.running.inbox import Inbox, Occurrence, essential
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent
from wharfinger.kube.resource import ObjectKey, ResourceType

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
ADDED, MODIFIED, DELETED = WatchVerb.ADDED, WatchVerb.MODIFIED, WatchVerb.DELETED
HOOK = hook(
    "{configVersion: v1, schedule: [{name: often, crontab: '* * * * *'}, {name: tick, crontab: '* * * * *', group: g}],"
    " kubernetes: [{name: pods, kind: Pod}, {name: others, kind: Pod}, {name: one, kind: Pod, group: g},"
    " {name: two, kind: Pod, group: g}, {name: three, kind: Pod, group: h},"
    " {name: added, kind: Pod, executeHookOnEvent: [Added]}]}"
)
OLD = hook("{schedule: [{name: often, crontab: '* * * * *'}, {name: also, crontab: '* * * * *'}]}")
PODS, OTHERS, ONE, TWO, THREE, ONLY_ADDED = HOOK.config.kubernetes
OFTEN, TICK = HOOK.config.schedules


def event(verb: WatchVerb, name: str = "a", state: int = 0, binding: KubernetesBinding = PODS) -> Occurrence:
    item = Item(None, PackedJson(str(state).encode()))
    return Occurrence(binding, MonitorEvent(verb, ObjectKey(POD, "prod", name), item))


def state_of(occurrence: Occurrence) -> int:
    assert occurrence.event is not None
    assert occurrence.event.item.filter_result is not None
    return int(occurrence.event.item.filter_result.text())


def short(box: Inbox) -> list[str]:
    """Return the waiting occurrences in short: ``Added a 0``, or the name of the binding."""
    return [
        one.binding.name if one.event is None else f"{one.event.verb} {one.event.key.name} {state_of(one)}"
        for one in box.waiting
    ]


def filled(*occurrences: Occurrence, limit: int = 1_000) -> Inbox:
    box = Inbox(HOOK, "main", limit=limit)
    for occurrence in occurrences:
        box.add(occurrence)
    return box


def test_up_to_the_limit_all_occurrences_are_offered_in_order() -> None:
    story = [event(ADDED), event(MODIFIED, state=1), event(DELETED, state=2), event(ADDED, state=3), event(MODIFIED)]
    box = filled(*story, limit=5)
    assert list(box.offered()) == story
    assert box.reduced == 0
    box.remove_processed(story)
    assert (box.offered(), short(box)) == ((), [])


def test_beyond_the_limit_two_occurrences_per_object_and_binding_remain() -> None:
    box = filled(
        event(MODIFIED, "a", 1),
        event(MODIFIED, "a", 2, OTHERS),
        event(MODIFIED, "b", 3),
        event(MODIFIED, "a", 4),
        event(MODIFIED, "a", 5, OTHERS),
        event(MODIFIED, "a", 6),
        limit=5,
    )
    assert short(box) == ["Modified a 1", "Modified a 2", "Modified b 3", "Modified a 5", "Modified a 6"]
    assert box.reduced == 1


def test_addition_followed_by_deletion_is_dropped_but_not_the_reverse() -> None:
    box = filled(event(ADDED, "a"), event(DELETED, "b"), event(DELETED, "a"), event(ADDED, "b", 7), limit=3)
    assert short(box) == ["Deleted b 0", "Added b 7"]


def test_binding_for_additions_gets_only_the_last_addition() -> None:
    box = filled(*(event(ADDED, "a", number, ONLY_ADDED) for number in range(4)), limit=3)
    assert short(box) == ["Added a 3"]


def test_beyond_the_limit_the_last_occurrence_of_a_group_remains() -> None:
    story = [
        event(MODIFIED, binding=ONE),
        Occurrence(TICK, None),
        event(MODIFIED, binding=THREE),
        event(ADDED),
        event(MODIFIED, binding=TWO),
        event(MODIFIED, "b", binding=THREE),
        event(MODIFIED, state=1),
    ]
    assert essential(story) == [story[3], story[4], story[5], story[6]]
    tick = Occurrence(OFTEN, None)
    assert essential([tick, *story]) == [tick, story[3], story[4], story[5], story[6]]
    assert list(filled(*story).waiting) == story


def test_waiting_tick_is_not_duplicated() -> None:
    box = filled(Occurrence(OFTEN, None), event(ADDED), Occurrence(OFTEN, None), Occurrence(TICK, None))
    assert short(box) == ["often", "Added a 0", "tick"]
    offered = box.offered()
    box.add(Occurrence(OFTEN, None))
    assert short(box) == ["often", "Added a 0", "tick", "often"], "the run began before the last tick"
    box.remove_processed(offered)
    assert short(box) == ["often"]


def test_ticks_do_not_pile_up_while_the_runs_of_a_hook_fail() -> None:
    box = filled(Occurrence(OFTEN, None), event(ADDED))
    for _ in range(5):
        assert [one.binding for one in box.offered()] == [OFTEN, PODS]
        box.add(Occurrence(OFTEN, None))
        assert short(box) == ["often", "Added a 0", "often"]
    assert box.reduced == 4


def test_after_a_failed_run_its_occurrences_and_new_ones_are_offered() -> None:
    first, second = event(ADDED), event(MODIFIED)
    box = filled(first)
    offered = box.offered()
    box.add(second)
    assert offered == (first,)
    assert box.offered() == (first, second)
    box.remove_processed(offered)
    assert box.offered() == (second,)


def test_occurrences_of_a_running_hook_are_not_reduced() -> None:
    """The object ``a`` was reported to the running hook, so the deletion of ``a`` must be reported to it later."""
    box = filled(event(ADDED, "a"), limit=2)
    offered = box.offered()
    for number in range(10):
        box.add(event(MODIFIED, "a", number))
    box.add(event(DELETED, "a"))
    assert short(box)[0] == "Added a 0"
    box.remove_processed(offered)
    assert short(box)[-1] == "Deleted a 0"


def test_occurrences_of_a_failed_run_are_reduced() -> None:
    box = filled(event(ADDED, "a"), event(ADDED, "b"), limit=2)
    box.offered()
    box.add(event(DELETED, "a"))
    assert len(box.waiting) == 3
    assert [one.event and one.event.key.name for one in box.offered()] == ["b"]


def test_objects_deleted_for_good_use_no_space_even_with_failing_runs() -> None:
    box, longest = Inbox(HOOK, "main", limit=10), 0
    for number in range(5_000):
        box.add(event(ADDED, f"job-{number}"))
        if number % 7 == 0:
            box.offered()
        box.add(event(DELETED, f"job-{number}"))
        longest = max(longest, len(box.waiting))
    assert longest <= 30


def test_irreducible_inbox_is_not_reduced_again_on_each_occurrence() -> None:
    box = filled(*(event(ADDED, f"pod-{number}") for number in range(5_000)), limit=10)
    assert (len(box.waiting), box.reduced) == (5_000, 0)
    assert box._reduce_at >= 5_000
    box.remove_processed(box.offered())
    assert box._reduce_at == 10


def test_version_0_hooks_get_one_occurrence_at_a_time() -> None:
    box = Inbox(OLD, "main")
    for schedule in OLD.config.schedules:
        box.add(Occurrence(schedule, None))
    offered = box.offered()
    assert [one.binding.name for one in offered] == ["often"]
    box.remove_processed(offered)
    assert short(box) == ["also"]


def test_waiting_occurrences_are_distinguished_by_binding() -> None:
    twin = hook("{configVersion: v1, kubernetes: [{kind: Pod}, {kind: Pod}]}").config.kubernetes
    assert twin[0] == twin[1]
    box = filled(event(ADDED, binding=twin[0]))
    assert (box.waits_for(twin[0]), box.waits_for(twin[1])) == (True, False)
    offered = box.offered()
    assert box.waits_for(twin[0]), "the run has not ended yet"
    box.remove_processed(offered)
    assert not box.waits_for(twin[0])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc")),
        st.tuples(st.just("take"), st.sampled_from("abc")),
        st.tuples(st.sampled_from(["run", "fail", "begin", "tick"]), st.just("")),
    ),
    max_size=80,
)


def _apply(known: Mapping[str, int], told: tuple[Occurrence, ...]) -> dict[str, int]:
    """Return the state that a hook knows after a run, and check that the events of the run fit the state before it."""
    now = dict(known)
    for occurrence in told:
        if occurrence.event is None:
            continue
        name, verb = occurrence.event.key.name, occurrence.event.verb
        assert (name in now) == (verb is not ADDED), f"{verb} {name}"
        if verb is DELETED:
            del now[name]
        else:
            now[name] = state_of(occurrence)
    return now


@given(steps=STEPS, limit=st.integers(1, 8))
def test_hook_knows_the_final_state_despite_failing_runs(steps: list[tuple[str, str]], limit: int) -> None:
    box = Inbox(HOOK, "main", limit=limit)
    truth: dict[str, int] = {}
    known: dict[str, int] = {}
    under_way: tuple[Occurrence, ...] = ()
    for number, (what, name) in enumerate(steps):
        if what == "put":
            box.add(event(MODIFIED if name in truth else ADDED, name, number))
            truth[name] = number
        elif what == "take" and name in truth:
            box.add(event(DELETED, name, truth.pop(name)))
        elif what == "tick":
            box.add(Occurrence(OFTEN, None))
        elif what == "begin":
            under_way = box.offered()
        elif what == "run":
            known = _apply(known, under_way)
            box.remove_processed(under_way)
            under_way = ()
        elif what == "fail":
            under_way = ()
        assert len(box.waiting) <= 2 * max(limit, 4 * (2 * 3 + 1))
    last = box.offered()
    known = _apply(known, last)
    box.remove_processed(last)
    assert known == truth
    assert not box.waiting


@pytest.mark.parametrize("limit", [1, 1_000])
def test_emptied_inbox_reduces_at_its_limit_again(limit: int) -> None:
    box = filled(event(ADDED), event(MODIFIED), event(MODIFIED), limit=limit)
    box.remove_processed(box.offered())
    assert (len(box.waiting), box._reduce_at) == (0, limit)
