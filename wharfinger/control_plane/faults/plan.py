"""The choice of the faults to inject into each request.

Partitions depend on the time. All other faults depend only on the rules, the seed and the requests, so they can be repeated.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wharfinger.control_plane.faults.rule import Call, Partition, Rule


@dataclass(frozen=True, slots=True)
class PlanState:
    """For each rule, the number of requests that its selection fits (``asked``), and the number of these into which its fault
    was injected (``hits``). A partition does not count requests outside of its time.
    """

    asked: tuple[int, ...]
    hits: tuple[int, ...]


def first_state(rules: Sequence[Rule]) -> PlanState:
    """Return the state before the first request."""
    return PlanState((0,) * len(rules), (0,) * len(rules))


def step(
    rules: Sequence[Rule], state: PlanState, call: Call, now_s: float, *, seed: int
) -> tuple[PlanState, tuple[int, ...]]:
    """Return the state after a request, and the indexes of the rules that hit it, in their order.

    ``now_s`` is the time in seconds since the start of the control plane. A partition hits every selected request while it lasts;
    ``skip``, ``every``, ``times`` and ``chance`` do not limit it.
    """
    asked, hits, found = list(state.asked), list(state.hits), list[int]()
    for index, rule in enumerate(rules):
        if not rule.selection.fits(call):
            continue
        if isinstance(rule.fault, Partition):
            if rule.fault.until(now_s) is None:
                continue
        elif not _hit(rule, index, asked[index], hits[index], seed):
            asked[index] += 1
            continue
        asked[index] += 1
        hits[index] += 1
        found.append(index)
    return replace(state, asked=tuple(asked), hits=tuple(hits)), tuple(found)


def _hit(rule: Rule, index: int, asked: int, hits: int, seed: int) -> bool:
    if asked < rule.skip or (asked - rule.skip) % rule.every:
        return False
    if rule.times is not None and hits >= rule.times:
        return False
    # Each decision has its own generator, so requests that the rule does not select do not change the decision.
    return rule.chance >= 1 or random.Random(f"{seed} {index} {asked}").random() < rule.chance  # noqa: S311 - no secret
