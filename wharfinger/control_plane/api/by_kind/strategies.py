"""The lookup of a kind's strategy."""

from typing import Final

from wharfinger.control_plane.api.by_kind.other_groups_strategies import GROUP_STRATEGIES
from wharfinger.control_plane.api.by_kind.workload_strategies import WORKLOAD_STRATEGIES
from wharfinger.control_plane.api.core.pods.strategy import POD_STRATEGIES
from wharfinger.control_plane.api.core.strategies import CORE_STRATEGIES
from wharfinger.control_plane.api.resource.strategies import DEVICE_STRATEGIES
from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.control_plane.objects.strategy import Strategy

STRATEGIES: Final[dict[str, Strategy]] = {
    **CORE_STRATEGIES,
    **POD_STRATEGIES,
    **WORKLOAD_STRATEGIES,
    **GROUP_STRATEGIES,
    **DEVICE_STRATEGIES,
}
"""The strategies by ``Kind.group_kind``."""
_NONE: Final = Strategy()


def strategy_of(kind: Kind) -> Strategy:
    """Return the strategy of a kind; a custom kind gets the default strategy, which changes nothing."""
    return STRATEGIES.get(kind.group_kind, _NONE)
