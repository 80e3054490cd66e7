"""The rules of workloads: apps, batch, autoscaling, policy, and replication controllers."""

from typing import Final

from wharfinger.cluster.control_plane.validation.rules import Rules

WORKLOAD_RULES: Final[dict[str, Rules]] = {}
