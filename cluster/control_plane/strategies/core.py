"""Strategies of the core group, beside Pods and workloads."""

from typing import Final

from wharfinger.cluster.control_plane.strategies.strategy import Strategy

CORE_STRATEGIES: Final[dict[str, Strategy]] = {}
