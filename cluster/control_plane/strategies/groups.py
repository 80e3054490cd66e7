"""Strategies of the other groups."""

from typing import Final

from wharfinger.cluster.control_plane.strategies.strategy import Strategy

GROUP_STRATEGIES: Final[dict[str, Strategy]] = {}
