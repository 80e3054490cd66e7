from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.faults.plan import PlanState, first_state, step
from wharfinger.control_plane.faults.rule import Call, DropBefore, Partition, Rule, Selection

CALL = Call("get", "configmaps", "ConfigMap", "a", "b", "test")


def hits(rule: Rule, requests: int, *, seed: int = 0) -> list[int]:
    """Return the numbers of the requests that a rule hits. The first request has the number 0."""
    state, found = first_state([rule]), []
    for number in range(requests):
        state, hit = step([rule], state, CALL, float(number), seed=seed)
        found += [number] if hit else []
    return found


def test_skip_every_and_times_select_requests() -> None:
    assert hits(Rule(DropBefore()), 4) == [0, 1, 2, 3]
    assert hits(Rule(DropBefore(), skip=2), 5) == [2, 3, 4]
    assert hits(Rule(DropBefore(), skip=1, every=3), 9) == [1, 4, 7]
    assert hits(Rule(DropBefore(), skip=1, every=2, times=2), 9) == [1, 3]
    assert hits(Rule(DropBefore(), times=0), 3) == []


def test_a_partition_affects_every_request_during_its_time() -> None:
    assert hits(Rule(Partition(2, 2, 5), times=0), 10) == [2, 3, 7, 8]


def test_requests_outside_the_selection_are_not_counted() -> None:
    rule = Rule(DropBefore(), Selection(kind="secrets"), skip=1)
    assert step([rule], first_state([rule]), CALL, 0.0, seed=0) == (first_state([rule]), ())


def test_several_rules_apply_in_their_order() -> None:
    rules = [Rule(DropBefore()), Rule(DropBefore(), skip=1), Rule(DropBefore())]
    state, hit = step(rules, first_state(rules), CALL, 0.0, seed=0)
    assert (hit, state) == ((0, 2), PlanState((1, 1, 1), (1, 0, 1)))


@given(st.integers(), st.floats(0, 1))
def test_the_same_seed_gives_the_same_faults(seed: int, chance: float) -> None:
    rule = Rule(DropBefore(), chance=chance)
    assert hits(rule, 20, seed=seed) == hits(rule, 20, seed=seed)


def test_a_rule_with_a_chance_applies_with_this_frequency() -> None:
    assert 380 < len(hits(Rule(DropBefore(), chance=0.5), 1000, seed=7)) < 620
    assert hits(Rule(DropBefore(), chance=0), 50) == []
