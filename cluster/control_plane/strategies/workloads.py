"""Strategies of workloads: apps, batch, autoscaling, policy, and replication controllers."""

from typing import Final

from wharfinger.cluster.control_plane.strategies.strategy import Strategy

WORKLOAD_STRATEGIES: Final[dict[str, Strategy]] = {}
