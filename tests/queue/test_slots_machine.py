"""The state machine of slots, case by case: its table, the order of turns, and the effects of each event."""

from dataclasses import replace

import pytest

from wharfinger.queue.slots_machine import (
    MAX_SLOW,
    Asked,
    Event,
    Granted,
    IllegalSlotEvent,
    Kind,
    Outcome,
    Returned,
    SlotLimits,
    SlotsState,
    Withdrawn,
    count_waiting,
    fresh,
    group_of,
    held_by_slow,
    step,
    waits_for,
)

NO_RESERVE = SlotLimits(source_share=100, namespace_share=100)
LIMITS = replace(NO_RESERVE, work=3, downloads=2, renders=1, hooks=2, loads=1, api=2)


def after(*events: Event, limits: SlotLimits = LIMITS) -> tuple[SlotsState, list[int]]:
    """Return the state after all events, and all granted requests in order."""
    return further(fresh(limits), *events)


def further(state: SlotsState, *events: Event) -> tuple[SlotsState, list[int]]:
    granted: list[int] = []
    for event in events:
        state, effects = step(state, event)
        granted += [effect.request for effect in effects]
    return state, granted


def download(request: int, package: str) -> Asked:
    return Asked(request, Kind.DOWNLOAD, package)


def test_limits_have_defaults() -> None:
    numbers = SlotLimits(work=16, downloads=8, renders=3, hooks=8, loads=4, api=32, source_share=50, namespace_share=75)
    assert SlotLimits() == numbers


@pytest.mark.parametrize("name", ["work", "downloads", "renders", "hooks", "loads", "api"])
def test_a_limit_below_one_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"limit of {name}: expected at least 1, found 0"):
        SlotLimits(**{name: 0})


@pytest.mark.parametrize("name", ["source_share", "namespace_share"])
@pytest.mark.parametrize("percent", [0, 101])
def test_an_invalid_percentage_is_refused_by_name(name: str, percent: int) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected a percentage from 1 to 100, found {percent}"):
        SlotLimits(**{name: percent})


@pytest.mark.parametrize(
    ("package", "group"),
    [("prod.web", "prod"), ("prod.web.two", "prod"), ("ingress", "."), ("prod", "."), ("", ""), (".web", "")],
)
def test_packages_take_turns_by_namespace_and_modules_together(package: str, group: str) -> None:
    assert group_of(package) == group


def test_free_slots_are_granted_at_once() -> None:
    state, granted = after(download(1, "a.x"), download(2, "a.x"), Asked(3, Kind.API, "a.x"))
    assert granted == [1, 2, 3]
    assert (state.work.used, state.kinds[Kind.DOWNLOAD].used, state.kinds[Kind.API].used) == (2, 2, 1)


def test_a_request_for_a_full_kind_waits_although_work_slots_are_free() -> None:
    state, granted = after(download(1, "a.x"), download(2, "a.x"), download(3, "b.x"), Asked(4, Kind.LOAD, "b.x"))
    assert granted == [1, 2, 4]
    assert waits_for(state, "b.x") == (Kind.DOWNLOAD,)
    assert count_waiting(state.kinds[Kind.DOWNLOAD]) == 1


def test_all_work_is_limited_and_a_waiting_request_holds_no_slot() -> None:
    state, granted = after(
        download(1, "a.x"), download(2, "a.x"), Asked(3, Kind.LOAD, "a.x"), Asked(4, Kind.RENDER, "b.x")
    )
    assert granted == [1, 2, 3]
    assert (state.work.used, state.kinds[Kind.RENDER].used) == (3, 0)
    state, granted = further(state, Returned(Kind.DOWNLOAD, "a.x"))
    assert granted == [4]
    assert (state.work.used, state.kinds[Kind.RENDER].used, state.kinds[Kind.DOWNLOAD].used) == (3, 1, 1)


def test_api_calls_take_no_slot_for_work() -> None:
    state, granted = after(
        *(Asked(number, Kind.HOOK, package) for number, package in enumerate(["a.x", "b.x"])),
        download(2, "a.x"),
        Asked(3, Kind.API, "a.x"),
        Asked(4, Kind.API, "b.x"),
    )
    assert granted == [0, 1, 2, 3, 4]
    assert state.work.used == 3
    state, _ = further(state, Returned(Kind.API, "a.x"))
    assert (state.work.used, state.kinds[Kind.API].used) == (3, 1)


def test_namespaces_and_their_packages_take_turns() -> None:
    limits = replace(NO_RESERVE, downloads=1)
    asked = [download(1, "now.x")]
    asked += [download(number, "a.one") for number in (2, 3, 4)]
    asked += [download(5, "a.two"), download(6, "b.x"), download(7, "b.x"), download(8, "ingress"), download(9, "dns")]
    state, _ = after(*asked, limits=limits)
    order = []
    holder = {1: "now.x", **{event.request: event.package for event in asked}}
    last = 1
    for _ in range(8):
        state, granted = further(state, Returned(Kind.DOWNLOAD, holder[last]))
        order += granted
        last = order[-1]
    assert order == [2, 6, 8, 5, 7, 9, 3, 4]
    assert not state.kinds[Kind.DOWNLOAD].line


def test_a_free_slot_for_work_goes_to_the_earliest_turn_of_any_kind() -> None:
    limits = replace(NO_RESERVE, work=1)
    state, _ = after(
        download(1, "now.x"),
        Asked(2, Kind.RENDER, "b.x"),
        Asked(3, Kind.HOOK, "a.x"),
        download(4, "a.x"),
        Asked(5, Kind.RENDER, "b.x"),
        limits=limits,
    )
    order = []
    for kind, package in [(Kind.DOWNLOAD, "now.x"), (Kind.RENDER, "b.x"), (Kind.HOOK, "a.x"), (Kind.DOWNLOAD, "a.x")]:
        state, granted = further(state, Returned(kind, package))
        order += granted
    assert order == [2, 3, 4, 5]


def test_a_free_slot_for_work_is_not_reserved_for_a_full_kind() -> None:
    limits = replace(NO_RESERVE, work=2, renders=1)
    state, granted = after(
        Asked(1, Kind.RENDER, "a.x"),
        download(2, "a.x"),
        Asked(3, Kind.RENDER, "b.x"),
        download(4, "c.x"),
        limits=limits,
    )
    assert granted == [1, 2]
    state, granted = further(state, Returned(Kind.DOWNLOAD, "a.x"))
    assert granted == [4]
    assert further(state, Returned(Kind.RENDER, "a.x"))[1] == [3]


@pytest.mark.parametrize(
    ("kind", "limit", "share"),
    [(Kind.HOOK, 8, 4), (Kind.HOOK, 3, 1), (Kind.HOOK, 1, 1), (Kind.API, 32, 16), (Kind.API, 1, 1)],
)
def test_one_package_has_at_most_half_of_the_hooks_and_api_calls(kind: Kind, limit: int, share: int) -> None:
    limits = replace(NO_RESERVE, work=100, hooks=limit, api=limit)
    state, granted = after(*(Asked(number, kind, "a.hangs") for number in range(limit + 1)), limits=limits)
    assert len(granted) == share
    others = limit - share
    state, granted = further(state, *(Asked(100 + number, kind, f"a.b{number}") for number in range(others)))
    assert len(granted) == others
    assert state.kinds[kind].used == limit


def test_a_package_may_have_all_downloads() -> None:
    _, granted = after(*(download(number, "a.x") for number in range(4)), limits=replace(NO_RESERVE, downloads=4))
    assert granted == [0, 1, 2, 3]


def test_a_group_at_its_share_is_passed_over_and_retains_its_turn() -> None:
    limits = replace(NO_RESERVE, hooks=2)
    state, granted = after(
        Asked(1, Kind.HOOK, "a.x"),
        Asked(2, Kind.HOOK, "b.x"),
        Asked(3, Kind.HOOK, "a.x"),
        Asked(4, Kind.HOOK, "b.y"),
        Asked(5, Kind.HOOK, "c.x"),
        limits=limits,
    )
    assert granted == [1, 2]
    state, granted = further(state, Returned(Kind.HOOK, "b.x"))
    assert granted == [4]
    state, granted = further(state, Returned(Kind.HOOK, "a.x"))
    assert granted == [3]


def test_a_return_below_a_share_grants_a_request_although_the_kind_was_not_full() -> None:
    limits = replace(NO_RESERVE, hooks=4)
    state, granted = after(*(Asked(number, Kind.HOOK, "a.x") for number in (1, 2, 3)), limits=limits)
    assert granted == [1, 2]
    assert further(state, Returned(Kind.HOOK, "a.x"))[1] == [3]


def test_one_namespace_never_has_all_slots_of_a_kind() -> None:
    state, granted = after(*(download(number, f"bad.p{number}") for number in range(10)), limits=SlotLimits())
    assert len(granted) == 6
    assert further(state, download(10, "good.x"), download(11, "dns"))[1] == [10, 11]


def test_one_namespace_never_has_all_slots_for_work() -> None:
    kinds = (Kind.DOWNLOAD, Kind.RENDER, Kind.HOOK, Kind.LOAD)
    limits = SlotLimits(work=8, downloads=8, renders=8, hooks=8, loads=8)
    asked = [Asked(number, kinds[number % 4], f"bad.p{number}") for number in range(16)]
    state, granted = after(*asked, limits=limits)
    assert len(granted) == 6
    assert further(state, download(16, "good.x"), Asked(17, Kind.HOOK, "good.x"))[1] == [16, 17]


def test_one_source_has_at_most_half_of_the_downloads() -> None:
    asked = [Asked(number, Kind.DOWNLOAD, f"ns{number}.x", "slow.example") for number in range(10)]
    state, granted = after(*asked, limits=SlotLimits())
    assert len(granted) == 4
    state, granted = further(state, Asked(10, Kind.DOWNLOAD, "ns9.x", "other.example"))
    assert granted == []  # This request waits behind the earlier request of its package.
    state, granted = further(state, Asked(11, Kind.DOWNLOAD, "ns10.x", "other.example"))
    assert granted == [11]


def test_a_withdrawal_can_grant_the_next_request_of_the_package() -> None:
    asked = [Asked(number, Kind.DOWNLOAD, f"ns{number}.x", "slow.example") for number in range(5)]
    state, granted = after(*asked, Asked(5, Kind.DOWNLOAD, "ns4.x", "other.example"), limits=SlotLimits())
    assert granted == [0, 1, 2, 3]
    assert further(state, Withdrawn(4, Kind.DOWNLOAD, "ns4.x"))[1] == [5]


def test_one_return_can_grant_two_requests() -> None:
    """Two requests wait, although slots are free: the namespace of the first one and the source of the second one already have
    as many slots as their shares allow. The returned slot belongs to both this namespace and this source.
    """
    limits = SlotLimits(downloads=4)
    state, granted = after(
        Asked(1, Kind.DOWNLOAD, "a.one", "slow.example"),
        Asked(2, Kind.DOWNLOAD, "a.two", "slow.example"),
        Asked(3, Kind.DOWNLOAD, "a.three", "other.example"),
        Asked(4, Kind.DOWNLOAD, "a.four", "other.example"),
        Asked(5, Kind.DOWNLOAD, "b.one", "slow.example"),
        limits=replace(limits, downloads=5, source_share=40, namespace_share=60),
    )
    assert granted == [1, 2, 3]
    assert further(state, Returned(Kind.DOWNLOAD, "a.one", "slow.example"))[1] == [4, 5]


def test_slow_packages_share_a_quarter_until_they_succeed() -> None:
    state, _ = after(*(Asked(number, Kind.HOOK, f"ns{number}.x") for number in range(5)), limits=SlotLimits())
    for number in range(5):
        state, _ = further(state, Returned(Kind.HOOK, f"ns{number}.x", outcome=Outcome.SLOW))
    state, granted = further(state, *(Asked(10 + number, Kind.HOOK, f"ns{number}.x") for number in range(5)))
    assert granted == [10, 11]
    state, granted = further(state, *(Asked(20 + number, Kind.HOOK, f"good{number}.x") for number in range(6)))
    assert granted == [20, 21, 22, 23, 24, 25]
    state, granted = further(state, Returned(Kind.HOOK, "ns0.x", outcome=Outcome.FAILED))
    assert granted == [12]
    state, granted = further(state, Returned(Kind.HOOK, "ns1.x", outcome=Outcome.DONE))
    assert granted == [13]
    assert list(state.kinds[Kind.HOOK].slow) == ["ns0.x", "ns2.x", "ns3.x", "ns4.x"]
    assert held_by_slow(state.kinds[Kind.HOOK]) == 2


def test_the_number_of_remembered_slow_packages_is_bounded() -> None:
    state = fresh(SlotLimits())
    for number in range(MAX_SLOW + 5):
        package = f"ns.p{number}"
        state, _ = further(state, Asked(number, Kind.LOAD, package), Returned(Kind.LOAD, package, outcome=Outcome.SLOW))
    slow = list(state.kinds[Kind.LOAD].slow)
    assert len(slow) == MAX_SLOW
    assert (slow[0], slow[-1]) == ("ns.p5", f"ns.p{MAX_SLOW + 4}")


def test_a_share_is_computed_from_the_usable_slots() -> None:
    """There are two slots for all work. So one source may use half of these two, and not half of the eight slots for
    downloads.
    """
    limits = SlotLimits(work=2)
    state, granted = after(
        *(Asked(number, Kind.DOWNLOAD, f"ns{number}.x", "slow.example") for number in range(4)), limits=limits
    )
    assert granted == [0]
    assert further(state, Asked(9, Kind.DOWNLOAD, "good.x", "other.example"))[1] == [9]


def test_a_withdrawal_does_not_change_other_turns() -> None:
    limits = replace(NO_RESERVE, renders=1)
    asked = [Asked(1, Kind.RENDER, "now.x"), Asked(2, Kind.RENDER, "a.x"), Asked(3, Kind.RENDER, "a.x")]
    asked += [Asked(4, Kind.RENDER, "a.y"), Asked(5, Kind.RENDER, "b.x")]
    state, _ = after(*asked, Withdrawn(2, Kind.RENDER, "a.x"), limits=limits)
    assert further(state, Returned(Kind.RENDER, "now.x"))[1] == [3]
    state, _ = further(state, Withdrawn(3, Kind.RENDER, "a.x"))
    assert waits_for(state, "a.x") == ()
    assert further(state, Returned(Kind.RENDER, "now.x"))[1] == [4]
    state, _ = further(state, Withdrawn(4, Kind.RENDER, "a.y"))
    assert list(state.kinds[Kind.RENDER].line) == ["b"]
    assert further(state, Returned(Kind.RENDER, "now.x"))[1] == [5]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Withdrawn(1, Kind.RENDER, "a.x"), "a.x withdrew request 1, which does not wait"),
        (Withdrawn(2, Kind.RENDER, "a.x"), "a.x withdrew request 2, which does not wait"),
        (Withdrawn(2, Kind.LOAD, "b.x"), "b.x withdrew request 2, which does not wait"),
        (Returned(Kind.RENDER, "b.x"), "b.x returned a slot of renders, but holds none"),
        (Returned(Kind.RENDER, "a.x", "some.example"), "a.x returned a slot of renders, but holds none"),
        (Returned(Kind.API, ""), "the daemon returned a slot of api, but holds none"),
    ],
)
def test_an_illegal_event_raises_an_error_and_changes_nothing(event: Event, said: str) -> None:
    state, _ = after(Asked(1, Kind.RENDER, "a.x"), Asked(2, Kind.RENDER, "b.x"))
    before = repr(state)
    with pytest.raises(IllegalSlotEvent, match=said):
        step(state, event)
    assert repr(state) == before


def test_effects_name_the_request() -> None:
    assert step(fresh(LIMITS), Asked(7, Kind.LOAD, "a.x"))[1] == (Granted(7),)
