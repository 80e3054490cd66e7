"""Strategies of Pods."""

from typing import Final

from wharfinger.cluster.control_plane.strategies.strategy import Strategy

POD_STRATEGIES: Final[dict[str, Strategy]] = {}
