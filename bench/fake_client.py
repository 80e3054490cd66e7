"""The parts of a cluster client that every watch uses, as the base class of clients that answer from memory."""

import math

from wharfinger.cluster.traffic.heartbeats import Heartbeats
from wharfinger.kube.resource import ResourceType


class FakeClient:
    """A client whose watches may be silent forever."""

    def __init__(self) -> None:
        self.heartbeats = Heartbeats()

    def silence_limit(self, _resource: ResourceType) -> float:
        """Return the number of seconds for which a watch may be silent."""
        return math.inf
