"""The parts of a cluster client that every watch uses, for clients of benchmarks that answer from memory."""

import math

from wharfinger.cluster.traffic.heartbeats import Heartbeats
from wharfinger.kube.resource import ResourceType


class FakeClient:
    """A client whose watches may be silent for ever."""

    def __init__(self) -> None:
        self.heartbeats = Heartbeats()

    def silence_limit(self, _resource: ResourceType) -> float:
        """Return for how many seconds a watch may be silent."""
        return math.inf
