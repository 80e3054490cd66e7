"""The surroundings of a package that a step depends on: the time, and which operations run."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from wharfinger.runtime.lifecycle import lifecycle_machine as lifecycle
from wharfinger.runtime.package.effects import Effect
from wharfinger.runtime.package.state import Package


@dataclass(frozen=True, slots=True)
class Around:
    """The wall clock, and the lifecycle machine's state of the package (None: the machine does not know it)."""

    now: datetime
    operations: lifecycle.Package | None

    @property
    def loading(self) -> bool:
        """True while an update runs. The reconciliation after it reads the settings late."""
        return self.operations is not None and self.operations.update is not None

    @property
    def suspended(self) -> bool:
        """True if a user has suspended the package. A removal is carried out nevertheless."""
        return self.operations is not None and self.operations.desired.suspended

    @property
    def removing(self) -> bool:
        """True while the package is being removed. Then nothing is begun for it, whatever the scheduler decides."""
        return self.operations is not None and self.operations.removal is not None

    @property
    def applying(self) -> bool:
        """True while a reconciliation is on its way to Run, or in it."""
        return self.operations is not None and self.operations.applying


Next: TypeAlias = tuple[Package, tuple[Effect, ...]]
"""The package after a step, and the effects to perform, in this order."""
