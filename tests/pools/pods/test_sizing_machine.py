"""The wanted number of pods: every rule of the machine, and events in random order with a cluster in memory."""

from collections import Counter
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.pools.pods.podstates import POOL, pod, pool_spec
from wharfinger.pools.pods.pod_state import Phase, PodState
from wharfinger.pools.pods.resources import PoolSpec
from wharfinger.pools.pods.sizing_events import (
    CheckPod,
    DeletePod,
    Demand,
    MakePod,
    MakeUnknown,
    PodChecked,
    PodDoomed,
    PodGone,
    PodMade,
    PodRefused,
    PodSeen,
    RetirePod,
    RetireSettled,
    SizingEffect,
    SizingEvent,
    SpecChanged,
    TimePassed,
    WriteFailed,
)
from wharfinger.pools.pods.sizing_machine import (
    AT_ONCE,
    CHECK_S,
    NEVER,
    PAUSE_MAX_S,
    SizingState,
    current_idle,
    new_sizing_state,
    next_time,
    step,
    total,
    wanted_idle,
)


class Driver:
    """The state machine that decides the number of pods in a pool, with a clock that the test sets."""

    def __init__(self, spec: PoolSpec = POOL) -> None:
        self.now = 0.0
        self.state: SizingState = new_sizing_state(spec, "w-abc", 0.0)

    def take(self, *events: SizingEvent) -> list[SizingEffect]:
        effects: list[SizingEffect] = []
        for event in events:
            self.state, found = step(self.state, event, self.now)
            effects += found
        return effects

    def at(self, now: float) -> list[SizingEffect]:
        self.now = now
        return self.take(TimePassed())


def with_pods(spec: PoolSpec, *pods: PodState) -> Driver:
    driver = Driver(spec)
    driver.take(*(PodSeen(each) for each in pods))
    driver.state.making.clear()
    driver.state.serial = 0
    return driver


def test_each_missing_pod_is_created_once() -> None:
    driver = Driver(pool_spec(size=3))
    assert driver.take(SpecChanged(driver.state.spec)) == [MakePod("w-abc-1"), MakePod("w-abc-2"), MakePod("w-abc-3")]
    assert driver.take(PodMade("w-abc-1"), TimePassed(), PodMade("w-abc-2"), PodMade("w-abc-3")) == []
    assert driver.take(PodSeen(pod("1", template=POOL.template_hash)), TimePassed()) == []


def test_waiting_claims_add_to_the_size_only_once() -> None:
    driver = with_pods(pool_spec(size=1), pod("1"))
    assert len(driver.take(Demand(5, 5))) == 5
    assert driver.take(Demand(5, 5), TimePassed()) == []
    assert len(driver.take(Demand(7, 7))) == 2


def test_pods_including_claimed_ones_never_exceed_max() -> None:
    driver = with_pods(pool_spec(size=2, max=4), pod("1"), pod("2"), pod("3", phase=Phase.CLAIMED))
    assert len(driver.take(Demand(50, 50))) == 1
    assert total(driver.state) == 4


def test_concurrent_creations_of_pods_are_limited() -> None:
    driver = Driver(pool_spec(size=90))
    assert len(driver.take(TimePassed())) == AT_ONCE
    assert len(driver.take(PodMade("w-abc-1"), PodSeen(replace(pod("1"), name="w-abc-1")))) == 1


def test_a_pod_that_ended_is_deleted_and_replaced() -> None:
    driver = with_pods(POOL, pod("1"))
    ended = pod("1", 2, ended=True, ready=False)
    assert driver.take(PodSeen(ended)) == [DeletePod(ended), MakePod("w-abc-1")]
    assert driver.take(TimePassed()) == []
    assert driver.take(PodGone("1")) == []


def test_a_claimed_pod_is_not_changed() -> None:
    driver = with_pods(POOL, pod("1", phase=Phase.CLAIMED), pod("2", phase=Phase.CLAIMED, ended=True), pod("3"))
    assert driver.take(TimePassed(), SpecChanged(pool_spec(template={"spec": {"containers": [{"name": "x"}]}}))) == [
        RetirePod(driver.state.pods["3"]),
        MakePod("w-abc-1"),
    ]


def test_a_pod_of_another_pool_of_this_name_is_retired_and_then_deleted() -> None:
    driver = Driver()
    foreign = pod("1", pool_uid="earlier")
    assert driver.take(PodSeen(foreign)) == [RetirePod(foreign), MakePod("w-abc-1")]
    retired = replace(foreign, version=2, phase=Phase.RETIRING)
    assert driver.take(PodSeen(retired), RetireSettled("1", 1)) == [DeletePod(retired)]


def test_a_pod_of_another_pool_of_this_name_that_was_claimed_meanwhile_is_kept() -> None:
    driver = Driver()
    foreign = pod("1", pool_uid="earlier")
    assert driver.take(PodSeen(foreign))[0] == RetirePod(foreign)
    assert (
        driver.take(RetireSettled("1", 1), PodSeen(replace(foreign, version=2, phase=Phase.CLAIMED)), TimePassed())
        == []
    )


def test_a_doomed_pod_is_retired_and_replaced() -> None:
    driver = with_pods(pool_spec(size=1), pod("1"))
    assert driver.take(PodDoomed("1")) == [RetirePod(pod("1")), MakePod("w-abc-1")]
    assert driver.take(WriteFailed("1", "no answer")) == []
    assert driver.at(driver.state.paused_until) == [RetirePod(pod("1"))]
    retired = pod("1", 2, phase=Phase.RETIRING)
    assert driver.take(PodSeen(retired), RetireSettled("1", 1)) == [DeletePod(retired)]


def test_a_doomed_pod_that_was_claimed_is_left_to_its_claim() -> None:
    driver = with_pods(pool_spec(size=1), pod("1"), pod("2", phase=Phase.CLAIMED))
    assert driver.take(PodDoomed("2")) == []
    assert driver.take(PodDoomed("1"))[0] == RetirePod(pod("1"))
    assert driver.take(RetireSettled("1", 1), PodSeen(pod("1", 2, phase=Phase.CLAIMED)), TimePassed()) == []


def test_a_retired_pod_is_deleted_and_one_that_was_changed_meanwhile_is_not() -> None:
    other = pool_spec(template={"spec": {"containers": [{"name": "x"}]}}, size=0)
    for after, expected in (
        (pod("1", 2, phase=Phase.RETIRING), [DeletePod(pod("1", 2, phase=Phase.RETIRING))]),
        (pod("1", 2, phase=Phase.CLAIMED), []),
    ):
        driver = with_pods(pool_spec(size=0), pod("1"))
        assert driver.take(SpecChanged(other)) == [RetirePod(pod("1"))]
        if after.phase is Phase.RETIRING:
            assert driver.take(PodSeen(after), RetireSettled("1", 1)) == expected
        else:
            # The machine does nothing until the cache shows a later version.
            assert driver.take(RetireSettled("1", 1), TimePassed()) == []
            assert driver.take(PodSeen(after)) == expected


def test_a_conflict_is_followed_by_another_attempt_once_the_pod_is_seen_anew() -> None:
    driver = with_pods(pool_spec(size=0), pod("1"))
    other = pool_spec(template={"spec": {"containers": [{"name": "x"}]}}, size=0)
    driver.take(SpecChanged(other), RetireSettled("1", 1))
    assert driver.take(PodSeen(pod("1", 2))) == [RetirePod(pod("1", 2))]


def test_idle_pods_are_deleted_down_to_min_after_the_idle_time() -> None:
    driver = with_pods(pool_spec(size=2, min=1, idleSeconds=60), pod("1"), pod("2"), pod("3"))
    assert driver.at(59.0) == []
    driver.take(Demand(1, 1), Demand(0, 1))  # A use of the pool starts the idle time again.
    assert driver.at(60.0) == [RetirePod(pod("3"))]
    assert next_time(driver.state, 60.0) == 59.0 + 60.0
    assert driver.at(119.0) == [RetirePod(pod("2"))]
    assert driver.at(10_000.0) == []
    assert len(current_idle(driver.state)) == 1


def test_a_pool_that_is_used_again_has_its_size_again() -> None:
    driver = with_pods(pool_spec(size=2, min=0, idleSeconds=60))
    driver.at(61.0)
    driver.state.making.clear()
    assert wanted_idle(driver.state, 61.0) == 0
    assert len(driver.take(Demand(1, 1))) == 3


def test_a_smaller_max_takes_effect_at_once_on_idle_pods() -> None:
    driver = with_pods(pool_spec(size=3), pod("1"), pod("2", ready=False), pod("3"), pod("4", phase=Phase.CLAIMED))
    assert driver.take(SpecChanged(pool_spec(size=1, max=2))) == [
        RetirePod(pod("2", ready=False)),
        RetirePod(pod("3")),
    ] or (driver.state.busy.keys() == {"2", "1"})


def test_a_pod_that_does_not_become_ready_is_replaced() -> None:
    late = pod("1", ready=False, problem="ImagePullBackOff")
    driver = with_pods(pool_spec(startSeconds=30), late)
    assert driver.at(29.0) == []
    assert next_time(driver.state, 29.0) == 30.0
    assert driver.at(30.0) == [RetirePod(late), MakePod("w-abc-1")]
    assert driver.state.replaced == 1


def test_failures_pause_longer_each_time_and_a_new_template_ends_the_pause() -> None:
    driver = Driver()
    driver.take(TimePassed())
    pauses = []
    for number in range(1, 9):
        assert driver.take(PodRefused(f"w-abc-{number}", "quota")) == []
        pauses.append(driver.state.paused_until - driver.now)
        assert driver.at(driver.state.paused_until) == [MakePod(f"w-abc-{number + 1}")]
    assert pauses == [1, 2, 4, 8, 16, 32, PAUSE_MAX_S, PAUSE_MAX_S]
    driver.take(PodRefused("w-abc-9", "quota"))
    assert len(driver.take(SpecChanged(pool_spec(template={"spec": {"containers": [{"name": "x"}]}})))) == 1


def test_a_pod_with_unknown_outcome_is_created_again_with_the_same_name() -> None:
    driver = Driver()
    driver.take(TimePassed())
    assert driver.take(MakeUnknown("w-abc-1", "no answer")) == []
    assert driver.at(1.0) == [MakePod("w-abc-1")]
    assert driver.take(PodSeen(replace(pod("1"), name="w-abc-1")), MakeUnknown("w-abc-1", "no answer")) == []
    assert driver.at(100.0) == []


def test_a_pod_missing_in_the_cache_is_read_from_the_api_server() -> None:
    driver = Driver()
    driver.take(TimePassed(), PodMade("w-abc-1"))
    assert next_time(driver.state, 0.0) == CHECK_S
    assert driver.at(CHECK_S) == [CheckPod("w-abc-1")]
    assert driver.take(PodChecked("w-abc-1", found=True)) == []
    assert driver.at(2 * CHECK_S) == [CheckPod("w-abc-1")]
    assert driver.take(PodChecked("w-abc-1", found=False)) == [MakePod("w-abc-2")]


def test_nothing_is_due_without_pods_and_after_the_idle_time() -> None:
    driver = Driver(pool_spec(size=0))
    driver.at(1e6)
    assert next_time(driver.state, 1e6) == NEVER


class SizingMachine(RuleBasedStateMachine):
    """A cluster in memory whose cache lags behind, with claims by others and lost answers."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = pool_spec(size=2, min=1, max=5, idleSeconds=60, startSeconds=1000)
        self.driver = Driver(self.spec)
        self.truth: dict[str, PodState] = {}
        self.unseen: list[tuple[str, PodState | None]] = []
        self.requests: list[SizingEffect] = []
        self.version = 1
        self.made: Counter[str] = Counter()
        self.deleted_while_claimed: list[str] = []
        self.waiting = 0
        self.foreign = 0
        self._take(TimePassed())

    def _take(self, *events: SizingEvent) -> None:
        self.requests += self.driver.take(*events)

    def _put(self, found: PodState) -> PodState:
        self.version += 1
        changed = replace(found, version=self.version)
        self.truth[found.uid] = changed
        self.unseen.append((found.uid, changed))
        return changed

    def _drop(self, uid: str) -> None:
        del self.truth[uid]
        self.unseen.append((uid, None))

    @rule(waiting=st.integers(0, 4))
    def demand(self, waiting: int) -> None:
        self.waiting = waiting
        self._take(Demand(waiting, self.driver.state.accepted + waiting))

    @rule(seconds=st.sampled_from([0.5, 5.0, 70.0]))
    def pass_time(self, seconds: float) -> None:
        self.requests += self.driver.at(self.driver.now + seconds)

    @precondition(lambda self: self.unseen)
    @rule()
    def catch_up(self) -> None:
        uid, seen = self.unseen.pop(0)
        self._take(PodSeen(seen) if seen is not None else PodGone(uid))

    @precondition(lambda self: self.truth)
    @rule(data=st.data(), claimed=st.booleans())
    def change_a_pod(self, data: st.DataObject, *, claimed: bool) -> None:
        found = self.truth[data.draw(st.sampled_from(sorted(self.truth)))]
        if found.phase is Phase.IDLE:
            self._put(replace(found, phase=Phase.CLAIMED) if claimed else replace(found, ready=True))

    @precondition(lambda self: self.truth)
    @rule(data=st.data())
    def a_pod_dies(self, data: st.DataObject) -> None:
        found = self.truth[data.draw(st.sampled_from(sorted(self.truth)))]
        self._put(replace(found, ready=False, ended=True))

    @precondition(lambda self: self.foreign < 2)
    @rule()
    def a_pod_of_an_earlier_pool_shows_up(self) -> None:
        self.foreign += 1
        self._put(pod(f"foreign-{self.foreign}", pool_uid="earlier"))

    @rule(image=st.sampled_from(["a", "b"]))
    def change_the_template(self, image: str) -> None:
        template = {"spec": {"containers": [{"name": "main", "image": image}]}}
        self.spec = replace(pool_spec(template=template), size=2, min=1, max=5, idle_s=60.0)  # type: ignore[arg-type]
        self._take(SpecChanged(self.spec))

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), answered=st.booleans())
    def answer(self, data: st.DataObject, *, answered: bool) -> None:
        request = self.requests.pop(data.draw(st.integers(0, len(self.requests) - 1)))
        match request:
            case MakePod(name):
                if name not in {each.name for each in self.truth.values()}:
                    self.made[name] += 1
                    fields = {"name": name, "uid": f"uid-of-{name}", "template": self.spec.template_hash}
                    self._put(replace(pod("x", ready=False), **fields))  # type: ignore[arg-type]
                self._take(PodMade(name) if answered else MakeUnknown(name, "no answer"))
            case CheckPod(name):
                self._take(PodChecked(name, found=name in {each.name for each in self.truth.values()}))
            case RetirePod(wanted):
                now = self.truth.get(wanted.uid)
                if now is not None and now.version == wanted.version:
                    retired = self._put(replace(now, phase=Phase.RETIRING))
                    if answered:
                        self._take(PodSeen(retired))
                self._take(
                    RetireSettled(wanted.uid, wanted.version) if answered else WriteFailed(wanted.uid, "no answer")
                )
            case DeletePod(wanted):
                if wanted.uid in self.truth:
                    if self.truth[wanted.uid].phase is Phase.CLAIMED and not wanted.ended:
                        self.deleted_while_claimed.append(wanted.uid)
                    self._drop(wanted.uid)
                if not answered:
                    self._take(WriteFailed(wanted.uid, "no answer"))

    @invariant()
    def no_claimed_pod_is_deleted_and_no_name_is_used_twice(self) -> None:
        assert not self.deleted_while_claimed
        assert all(count == 1 for count in self.made.values())

    def teardown(self) -> None:
        """Let all faults end, and check that the pool then reaches its desired state."""
        for _ in range(200):
            while self.requests or self.unseen:
                while self.requests:
                    request = self.requests[0]
                    assert isinstance(request, MakePod | CheckPod | RetirePod | DeletePod)
                    self._settle_one()
                while self.unseen:
                    self.catch_up()
            for found in [each for each in self.truth.values() if each.phase is Phase.IDLE and not each.ready]:
                if not found.ended:
                    self._put(replace(found, ready=True))
            self.requests += self.driver.at(self.driver.now + 10.0)
        idle = [each for each in self.truth.values() if each.phase is Phase.IDLE and each.alive and each.ready]
        others = len(self.truth) - len(idle)
        gone = [each for each in self.truth.values() if each.ended]
        wanted = min(wanted_idle(self.driver.state, self.driver.now), max(self.spec.max - others + len(gone), 0))
        assert len(idle) == wanted, (idle, self.driver.state)

    def _settle_one(self) -> None:
        request = self.requests.pop(0)
        match request:
            case MakePod(name):
                if name not in {each.name for each in self.truth.values()}:
                    fields = {"name": name, "uid": f"uid-of-{name}-{self.version}", "template": self.spec.template_hash}
                    self._put(replace(pod("x", ready=False), **fields))  # type: ignore[arg-type]
                self._take(PodMade(name))
            case CheckPod(name):
                self._take(PodChecked(name, found=name in {each.name for each in self.truth.values()}))
            case RetirePod(wanted):
                now = self.truth.get(wanted.uid)
                if now is not None and now.version == wanted.version:
                    self._take(PodSeen(self._put(replace(now, phase=Phase.RETIRING))))
                self._take(RetireSettled(wanted.uid, wanted.version))
            case DeletePod(wanted):
                if wanted.uid in self.truth:
                    self._drop(wanted.uid)


TestSizingMachine = SizingMachine.TestCase
