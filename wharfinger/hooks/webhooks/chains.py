"""Chains of conversions: the shortest way from one version to another over the conversions that hooks declare. Pure.

A hook declares pairs of versions. Each version is short (``v1beta1``) or full (``group/v1beta1``). A short version matches
that version in any group; two full versions match only if they are equal (spec hook-protocol §3.5).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

Pair: TypeAlias = tuple[str, str]
"""A declared conversion, from the first version to the second."""
MAX_LENGTH: Final = 32
"""The limit on the number of conversions in one chain. Each conversion is a run of a hook."""


def versions_match(one: str, other: str) -> bool:
    """Return whether two versions match. A version without a group (``v1``) matches this version in any group
    (``example.com/v1``).
    """
    if "/" in one and "/" in other:
        return one == other
    return one.rpartition("/")[2] == other.rpartition("/")[2]


def find_chain(pairs: Iterable[Pair], source: str, target: str) -> tuple[Pair, ...] | None:
    """Return the shortest chain from ``source`` to ``target``, found breadth first. If several chains are equally short,
    the order in which their conversions are declared decides.

    Return an empty chain for two versions that match, and None if there is no chain of at most MAX_LENGTH conversions.
    """
    if versions_match(source, target):
        return ()
    declared = tuple(dict.fromkeys(pairs))
    waiting: deque[tuple[Pair, ...]] = deque((pair,) for pair in declared if versions_match(pair[0], source))
    used = {chain[0] for chain in waiting}
    while waiting:
        chain = waiting.popleft()
        if versions_match(chain[-1][1], target):
            return chain
        if len(chain) == MAX_LENGTH:
            return None
        for pair in declared:
            if pair not in used and versions_match(pair[0], chain[-1][1]):
                used.add(pair)
                waiting.append((*chain, pair))
    return None


def full_versions(chain: Sequence[Pair], target: str) -> tuple[str, ...]:
    """Return the full version that the objects have after each conversion of a chain.

    A short version gets the group of ``target``.
    """
    group = target.rpartition("/")[0]
    return tuple(to if "/" in to or not group else f"{group}/{to}" for _, to in chain)
