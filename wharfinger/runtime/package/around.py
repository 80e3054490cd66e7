"""The surroundings of a package that a step depends on: the time, and which operations run."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from wharfinger.runtime.lifecycle import lifecycle_machine as lifecycle
from wharfinger.runtime.package.effects import Effect
from wharfinger.runtime.package.state import Package


@dataclass(frozen=True, slots=True)
class Around:
    """The wall clock, and the package as the lifecycle machine has it; None: it is not known there."""

    now: datetime
    operations: lifecycle.Package | None

    @property
    def loading(self) -> bool:
        """True while an update runs. The reconciliation after it reads the settings late."""
        return self.operations is not None and self.operations.update is not None

    @property
    def suspended(self) -> bool:
        """True if a user wants the package kept as it is. A removal is carried out nevertheless."""
        return self.operations is not None and self.operations.desired.suspended

    @property
    def removing(self) -> bool:
        """True while the package is being removed. Nothing is begun for it then, whatever is decided about it."""
        return self.operations is not None and self.operations.removal is not None

    @property
    def applying(self) -> bool:
        """True while a reconciliation is on its way to Run, or in it."""
        return self.operations is not None and self.operations.applying


Next: TypeAlias = tuple[Package, tuple[Effect, ...]]
"""The package after a step, and what is to be done, in this order."""
