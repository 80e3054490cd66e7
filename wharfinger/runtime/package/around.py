"""The inputs of a step that are not part of the package's state: the time, and the operations that run."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from wharfinger.runtime.lifecycle import lifecycle_machine as lifecycle
from wharfinger.runtime.package.effects import Effect
from wharfinger.runtime.package.state import Package


@dataclass(frozen=True, slots=True)
class Around:
    """The data outside of a package that a step of its state machine reads: the time of the wall clock, and the package's state
    in the lifecycle store (None if the store does not know the package).
    """

    now: datetime
    operations: lifecycle.Package | None

    @property
    def loading(self) -> bool:
        """True while an update of the package runs, which loads a version of it."""
        return self.operations is not None and self.operations.update is not None

    @property
    def suspended(self) -> bool:
        """True if a user has suspended the package. A removal is carried out nevertheless."""
        return self.operations is not None and self.operations.desired.suspended

    @property
    def removing(self) -> bool:
        """True while the package is being removed. No other operation begins then, whatever the scheduler decides."""
        return self.operations is not None and self.operations.removal is not None

    @property
    def applying(self) -> bool:
        """True while a reconciliation runs that has not completed its task Run."""
        return self.operations is not None and self.operations.applying


Next: TypeAlias = tuple[Package, tuple[Effect, ...]]
"""The package after a step, and the effects in the order in which they are to be carried out."""
