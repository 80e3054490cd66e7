"""What becomes of releases after they were applied: health, drift, and people who use helm beside us, told as status.

The release engine watches what it applied and says what it sees; here each saying finds its package. Health is told only once a
package was ready: until then the task that waits for it tells what it waits for. Drift that is merely told, and revisions that
somebody else made, are warnings: nothing is wrong that trying again would mend. Fields that somebody fights for make the package
Degraded, with that writer's name, until he lets go.
"""

import logging
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from wharfinger.cluster.drift import Drift
from wharfinger.cluster.drift_fights import Fight
from wharfinger.cluster.drift_policy import DriftMode
from wharfinger.cluster.health import Health
from wharfinger.cluster.ownership import Owner
from wharfinger.cluster.readiness import Failed
from wharfinger.queue.lane import acting_for
from wharfinger.runtime import status as statuses
from wharfinger.runtime.instance import Instance
from wharfinger.runtime.reasons import Reason
from wharfinger.runtime.rendering import of_foreign_revision, waiting_for
from wharfinger.runtime.status import Stage, Truth

if TYPE_CHECKING:
    from wharfinger.runtime.runtime import Runtime

log = logging.getLogger(__name__)

SHOWN_FIELDS: Final = 3


class Keeping:
    """Listens to the release engine for one runtime."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime

    def health_changed(self, owner: Owner, health: Health) -> None:
        """Objects of a release became ready, or are not any more, or say something else about why."""
        instance = self._instance(owner)
        if instance is None or not instance.status.scale_checked:
            return
        now, laggards = self.runtime.now(), health.laggards
        if not laggards:
            status = statuses.succeeded(instance.status, Stage.SCALED, now)
        elif failed := {key: state for key, state in laggards.items() if isinstance(state, Failed)}:
            text = waiting_for(failed)
            status = statuses.failed(instance.status, Stage.SCALED, Reason.WORKLOAD_FAILED, text, now, permanent=False)
        else:
            status = statuses.progressing(instance.status, Stage.SCALED, Reason.UNHEALTHY, waiting_for(laggards), now)
        self.runtime.set_status(instance, status)

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        """All fields of a release that are not as applied now, and those that are fought for."""
        instance = self._instance(owner)
        if instance is None:
            return
        instance.drift = tuple(str(drift) for drift in drifts)
        told = instance.wanted.upkeep.drift.mode is DriftMode.WARN
        self.runtime.reports.warned(instance, "drift", tuple(f"drift: {drift}" for drift in instance.drift if told))
        now, applied = self.runtime.now(), instance.status.stages[Stage.APPLIED]
        if fights:
            text = "; ".join(str(fight) for fight in fights[:SHOWN_FIELDS])
            more = len(fights) - SHOWN_FIELDS
            text += f"; and {more} more" if more > 0 else ""
            if applied.truth is Truth.TRUE or applied.reason == Reason.DRIFT_FOUGHT:
                log.warning("%s: fields are fought for: %s", instance.id, text)
                status = statuses.failed(
                    instance.status, Stage.APPLIED, Reason.DRIFT_FOUGHT, text, now, permanent=False
                )
                self.runtime.set_status(instance, status)
        elif applied.reason == Reason.DRIFT_FOUGHT:
            self.runtime.set_status(instance, statuses.succeeded(instance.status, Stage.APPLIED, now))

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        """Somebody else made a revision of a release of ours; it is left as he made it."""
        instance = self._instance(owner)
        if instance is None:
            return
        text = of_foreign_revision(release_revision, by)
        log.warning("%s: %s", instance.id, text)
        self.runtime.reports.warned(instance, "release", (text,))

    def _instance(self, owner: Owner) -> Instance | None:
        identity = self.runtime.claims.owner_of(owner.namespace, owner.name)
        return None if identity is None else self.runtime.instances.get(identity.name)


class Charging:
    """Whose share the reconciler's work is: that of the package whose release it is for."""

    def __init__(self) -> None:
        self.runtime: Runtime | None = None
        """Set once there is one; before, it is the daemon's own."""

    def __call__(self, owner: Owner) -> AbstractContextManager[None]:
        """For as long as the block runs, what is done is done for that package."""
        runtime = self.runtime
        identity = runtime.claims.owner_of(owner.namespace, owner.name) if runtime is not None else None
        return acting_for(identity.name if identity is not None else "")
