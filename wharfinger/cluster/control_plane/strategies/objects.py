"""Finds the strategy of a kind."""

from typing import Final

from wharfinger.cluster.control_plane.kinds import Kind
from wharfinger.cluster.control_plane.strategies.core import CORE_STRATEGIES
from wharfinger.cluster.control_plane.strategies.devices import DEVICE_STRATEGIES
from wharfinger.cluster.control_plane.strategies.groups import GROUP_STRATEGIES
from wharfinger.cluster.control_plane.strategies.pods import POD_STRATEGIES
from wharfinger.cluster.control_plane.strategies.strategy import Strategy
from wharfinger.cluster.control_plane.strategies.workloads import WORKLOAD_STRATEGIES

STRATEGIES: Final[dict[str, Strategy]] = {
    **CORE_STRATEGIES,
    **POD_STRATEGIES,
    **WORKLOAD_STRATEGIES,
    **GROUP_STRATEGIES,
    **DEVICE_STRATEGIES,
}
"""By ``Kind.group_kind``."""
_NONE: Final = Strategy()


def strategy_of(kind: Kind) -> Strategy:
    """The strategy of a kind; custom kinds have none of their own."""
    return STRATEGIES.get(kind.group_kind, _NONE)
