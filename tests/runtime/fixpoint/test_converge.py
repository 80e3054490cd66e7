"""`converge` runs bodies until nothing is left to do. Each body has its own task, and events may come from the world outside."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime.fixpoint.converge import Report, World, converge
from wharfinger.runtime.fixpoint.model import (
    Blocked,
    Crashed,
    DependencyFailed,
    Id,
    Level,
    Noop,
    Outcome,
    Outside,
    Terminal,
    Unresolved,
)
from wharfinger.runtime.fixpoint.state import Rules

A, B, C = node("a"), node("b"), node("c")
X = datum("x")
RULES = Rules()

Does = Callable[[Level, tuple[Id, ...]], Awaitable[Outcome]]


@dataclass
class Bodies:
    """Bodies with the outcomes that are given for some nodes. All other nodes are ready at once."""

    does: dict[Id, Does] = field(default_factory=dict)
    sweeping: set[Id] = field(default_factory=set)
    begun: list[Id] = field(default_factory=list)
    now: int = 0
    most: int = 0

    async def run(self, who: Id, level: Level, loop: tuple[Id, ...]) -> Outcome:
        self.begun.append(who)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self.does[who](level, loop) if who in self.does else Terminal("ready")
        finally:
            self.now -= 1

    def reruns_at_drain(self, who: Id) -> bool:
        return who in self.sweeping


def says(*outcomes: Outcome) -> Does:
    """Return a body that has these outcomes one after the other, and then the last one again and again."""
    left = list(outcomes)

    async def run(level: Level, loop: tuple[Id, ...]) -> Outcome:
        await trio.lowlevel.checkpoint()
        return left.pop(0) if len(left) > 1 else left[0]

    return run


async def end(bodies: Bodies, *seeds: Id, limit: int = 2, rules: Rules = RULES, world: World | None = None) -> Report:
    """Converge within five minutes of real time, which is only a timeout for the test."""
    with trio.fail_after(300):
        return await converge(bodies, seeds, limit=limit, rules=rules, world=world)


async def test_the_report_contains_every_result() -> None:
    bodies = Bodies(
        {
            A: says(Blocked((B,)), Terminal("saw b")),
            B: says(Blocked((X,)), DependencyFailed((X,), "no x")),
            C: says(Crashed("boom")),
            node("d"): says(Blocked((X,))),
        }
    )
    report = await end(bodies, C, B, A, node("d"))
    assert report == Report(
        results={A: "saw b", B: "no x", C: "crashed: boom", node("d"): "unresolved"},
        unresolved={node("d"): Unresolved(node("d"), (X,))},
        exhausted={},
        crashed={C: "boom"},
        runs={A: 2, B: 2, C: 1, node("d"): 3},
        level=Level.FORCE,
    )
    assert list(report.results) == [A, B, C, node("d")]


async def test_an_exhausted_node_is_reported_and_other_nodes_continue() -> None:
    made = iter(range(1000))

    async def makes(level: Level, loop: tuple[Id, ...]) -> Outcome:
        await trio.lowlevel.checkpoint()
        return Terminal("ready", (), (emission(A, str(next(made))),))

    report = await end(Bodies({A: makes}), A, B, rules=Rules(budget=3))
    assert list(report.exhausted) == [A]
    assert report.results == {A: f"exhausted: {report.exhausted[A].message}", B: "ready"}
    assert report.runs == {A: 4, B: 1}


async def test_a_forced_body_gets_the_loop_that_it_is_in() -> None:
    async def cycle(level: Level, loop: tuple[Id, ...]) -> Outcome:
        await trio.lowlevel.checkpoint()
        return DependencyFailed((B,), " ".join(map(str, loop))) if level is Level.FORCE else Blocked((B,))

    report = await end(Bodies({A: cycle, B: says(Blocked((A,)), Terminal("ready"))}), A, B)
    assert report.results[A] == "Node/a Node/b" or report.runs[A] > 2
    assert report.level is Level.FORCE


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_as_many_bodies_run_as_the_limit_allows(limit: int, autojump_clock: trio.testing.MockClock) -> None:
    async def waits(level: Level, loop: tuple[Id, ...]) -> Outcome:
        await trio.sleep(1)
        return Terminal("ready")

    names = [node(f"n{at}") for at in range(10)]
    bodies = Bodies(dict.fromkeys(names, waits))
    report = await converge(bodies, names, limit=limit)
    assert bodies.most == min(limit, 10)
    assert len(report.results) == 10
    assert trio.current_time() == -(-10 // limit)


async def test_a_later_success_replaces_a_crash_or_an_unresolved_end() -> None:
    bodies = Bodies(
        {
            A: says(Crashed("at first"), Terminal("ready")),
            B: says(*[Blocked((X,))] * 3, Terminal("after all", (), (emission(C),))),
            # The node that was parked on B emits x after B was unresolved.
            C: says(Blocked((B,)), Terminal("ready", (), (emission(X),)), Noop()),
        },
        sweeping={A},
    )
    report = await end(bodies, A, B, C, limit=1)
    assert report.results == {A: "ready", B: "after all", C: "ready"}
    assert (report.crashed, report.unresolved) == ({}, {})


@pytest.mark.parametrize(("limit", "drain"), [(0, True), (1, False)])
async def test_an_invalid_limit_and_rules_without_drain_are_refused(limit: int, drain: bool) -> None:
    with pytest.raises(ValueError, match="needs rules with drain=True"):
        await converge(Bodies(), (A,), limit=limit, rules=Rules(drain=drain))


async def test_converge_without_seeds_returns_an_empty_report() -> None:
    report = await end(Bodies())
    assert report == Report({}, {}, {}, {}, {}, Level.NONE)


# --- the world outside ----------------------------------------------------------------------------------------------------------


async def test_answers_from_outside_refer_to_the_number_of_a_run() -> None:
    world = World()
    asked: list[int] = []

    async def asks(level: Level, loop: tuple[Id, ...]) -> Outcome:
        asked.append(world.run_of(A))
        return Outside() if len(asked) < 3 else Terminal("answered twice")

    assert world.run_of(A) == 0
    async with trio.open_nursery() as nursery:
        reports: list[Report] = []

        async def run() -> None:
            reports.append(await end(Bodies({A: asks, B: says(Blocked((X,)), Noop())}), A, B, world=world))

        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        assert len(asked) == 1
        assert world.run_of(A) == 0
        world.answered(A, asked[0] - 1)
        await wait_all_tasks_blocked()
        assert len(asked) == 1
        world.answered(A, asked[0])
        await wait_all_tasks_blocked()
        assert len(asked) == 2
        world.answered(A, asked[1])
    assert reports[0].results == {A: "answered twice", B: ""}
    assert reports[0].runs == {A: 3, B: 2}


async def test_events_before_the_start_count_and_events_after_the_end_do_not() -> None:
    world = World()
    world.arrived(emission(X))
    world.arrived(emission(B))
    world.arrived(emission(C))
    world.removed(C)
    bodies = Bodies()
    report = await end(bodies, A, limit=1, world=world)
    assert report.results == {A: "ready", B: "ready"}
    world.asked(A)
    world.arrived(emission(C))
    await wait_all_tasks_blocked()
    assert bodies.begun == [B, A]
    with pytest.raises(RuntimeError, match="already passed to converge"):
        await end(Bodies(), A, world=world)


async def test_the_world_outside_can_request_add_and_remove_during_a_run() -> None:
    world = World()
    go = trio.Event()

    async def speaks(level: Level, loop: tuple[Id, ...]) -> Outcome:
        world.arrived(emission(X))
        await wait_all_tasks_blocked()
        world.asked(B)
        world.removed(C)
        go.set()
        return Terminal("spoke")

    async def goes(level: Level, loop: tuple[Id, ...]) -> Outcome:
        await go.wait()
        return Terminal("nobody's")

    bodies = Bodies({A: speaks, B: says(Blocked((X,)), Terminal("saw x"), Terminal("looked again")), C: goes})
    report = await end(bodies, A, B, C, limit=3, world=world)
    assert report.results == {A: "spoke", B: "looked again"}
    assert report.runs == {A: 1, B: 3, C: 1}


# --- cancellation ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2])
async def test_a_cancellation_cancels_bodies_and_begins_none(limit: int) -> None:
    """A cancelled body may take time to end, and may even report that it is done."""
    ended: list[str] = []

    async def lingers(level: Level, loop: tuple[Id, ...]) -> Outcome:
        try:
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(5, shield=True):
                await trio.lowlevel.checkpoint()
            ended.append("lingered")

    async def insists(level: Level, loop: tuple[Id, ...]) -> Outcome:
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked()
        return Terminal("done all the same", (), (emission(C),))

    bodies = Bodies({A: lingers, B: insists})
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: converge(bodies, (A, B, node("d")), limit=limit))
            await wait_all_tasks_blocked()
            begun = list(bodies.begun)
            scope.cancel()
    assert scope.cancelled_caught
    assert ended == ["lingered"]
    assert bodies.begun[: len(begun)] == begun
    assert C not in bodies.begun
    assert bodies.now == 0


async def test_a_body_that_ends_during_a_cancellation_begins_no_other() -> None:
    inside = trio.Event()

    async def shielded(level: Level, loop: tuple[Id, ...]) -> Outcome:
        with trio.CancelScope(shield=True):
            await inside.wait()
        return Terminal("done all the same")

    bodies = Bodies({A: shielded})
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: converge(bodies, (A, B), limit=1))
            await wait_all_tasks_blocked()
            scope.cancel()
            inside.set()
    assert bodies.begun == [A]
