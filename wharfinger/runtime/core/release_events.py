"""The events of releases after they were applied: health, drift, and revisions made with helm by others, shown as status.

The release engine watches the objects that it applied, and reports changes; here each report is matched with its package.
Health is shown only once a package was ready: until then, the waiting task reports what it waits for. If objects are unready
for a while, as during each scaling and each rollout, the package stays Ready, and is Reconciling; it becomes Degraded once
an object failed or stalled. Drift that is only reported, and revisions made by another writer, are warnings, because a retry
would not help. Fields that another manager sets again and again make the package Degraded, with that manager's name, until
it stops.
"""

import logging
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.objects.drift_policy import DriftMode
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.watch.readiness import Failed
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.lane import acting_for
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import has_release
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.rendering import of_foreign_revision, waiting_for

if TYPE_CHECKING:
    from wharfinger.runtime.core.runtime import Runtime

log = logging.getLogger(__name__)

SHOWN_FIGHTS: Final = 3
UPKEEP: Final = "upkeep"
"""The subject of warnings about objects that could not be corrected or pruned."""
RELEASE: Final = "release"
"""The subject of warnings about another writer's revisions; it is cleared when the package is applied again."""


class Keeping:
    """The listener of one runtime to its release engine."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime

    def health_changed(self, owner: Owner, health: Health) -> None:
        """Record that the readiness of a release's objects, or the reason for it, has changed."""
        instance = self._instance(owner)
        if instance is None:
            return
        if not instance.status.scale_checked:
            # It is Ready according to an earlier process, and the task that waits for it would wait forever.
            if not (instance.status.is_being_verified and health.stalled):
                return
            self._unhealthy(instance, health)
        elif health.laggards:
            self._unhealthy(instance, health)
        else:
            self.runtime.set_status(instance, statuses.succeeded(instance.status, Stage.SCALED, self.runtime.now()))

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        """Note all fields of a release that are not as applied now, and all fights over fields."""
        instance = self._instance(owner)
        if instance is None:
            return
        found = tuple(instance.masked(str(drift)) for drift in drifts)
        for text in found:
            if text not in instance.drift:
                log.info("%s: drift: %s", instance.id, text)
        instance.drift = found
        instance.fought = tuple(instance.masked(str(fight)) for fight in fights)
        self._warn_of_drift(instance)
        applied = instance.status.stages[Stage.APPLIED]
        if instance.fought:
            self._fought_for(instance)
        elif applied.reason == Reason.DRIFT_FOUGHT:
            self.runtime.set_status(instance, statuses.succeeded(instance.status, Stage.APPLIED, self.runtime.now()))

    def look_again(self, instance: Instance, stage: Stage) -> None:
        """Report health and fights that were ignored while a stage was at work, now that it is done."""
        if stage is Stage.APPLIED and instance.fought:
            self._fought_for(instance)
        elif stage is Stage.SCALED and has_release(instance.id):
            health = self.runtime.tools.releases.health(Owner(instance.id.release, instance.id.namespace))
            if health.known and health.laggards:
                self._unhealthy(instance, health)

    def _unhealthy(self, instance: Instance, health: Health) -> None:
        """Report Degraded if an object failed or stalled; otherwise objects are rolling out, and the package stays Ready."""
        now, laggards = self.runtime.now(), health.laggards
        if failed := {key: state for key, state in laggards.items() if isinstance(state, Failed)}:
            text = instance.masked(waiting_for(failed))
            status = statuses.failed(instance.status, Stage.SCALED, Reason.WORKLOAD_FAILED, text, now, permanent=False)
        elif stalled := {key: state for key, state in laggards.items() if key in health.stalled}:
            text = instance.masked(waiting_for(stalled))
            status = statuses.progressing(instance.status, Stage.SCALED, Reason.UNHEALTHY, text, now)
        else:
            status = statuses.rolling_out(instance.status, instance.masked(waiting_for(laggards)), now)
        self.runtime.set_status(instance, status)

    def _fought_for(self, instance: Instance) -> None:
        applied = instance.status.stages[Stage.APPLIED]
        if applied.truth is not Truth.TRUE and applied.reason != Reason.DRIFT_FOUGHT:
            return  # being applied: reported when that is done
        text = listed(instance.fought, SHOWN_FIGHTS, "; ")
        log.warning("%s: fields are fought for: %s", instance.id, text)
        self.runtime.set_status(
            instance,
            statuses.failed(
                instance.status, Stage.APPLIED, Reason.DRIFT_FOUGHT, text, self.runtime.now(), permanent=False
            ),
        )

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        """Warn that another writer made a revision of one of our releases; the release is left as that writer made it."""
        instance = self._instance(owner)
        if instance is None:
            return
        text = instance.masked(of_foreign_revision(release_revision, by))
        if instance.warnings.get(RELEASE) != (text,):
            log.warning("%s: %s", instance.id, text)
        self.runtime.reports.warned(instance, RELEASE, (text,))
        self._warn_of_drift(instance)

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        """Log objects that were deleted because their release no longer contains them."""
        instance = self._instance(owner)
        for key in keys:
            log.info(
                "%s: deleted %s: it has the label of release %s, which no longer contains it",
                owner if instance is None else instance.id,
                key,
                owner,
            )

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        """Warn about objects that cannot be corrected or pruned: the package is as it was installed, but a user has to act."""
        instance = self._instance(owner)
        if instance is None:
            for text in troubles:
                log.warning("%s: %s", owner, text)
            return
        texts = tuple(instance.masked(text) for text in troubles)
        for text in texts:
            if text not in instance.warnings.get(UPKEEP, ()):
                log.warning("%s: %s", instance.id, text)
        if instance.warnings.get(UPKEEP) and not texts:
            log.info("%s: everything that failed to be corrected or pruned is done", instance.id)
        self.runtime.reports.warned(instance, UPKEEP, texts)

    def _warn_of_drift(self, instance: Instance) -> None:
        """Warn about drift that is not corrected, because of the package's mode or because another writer changed the
        release last.
        """
        told = instance.wanted.upkeep.drift.mode is DriftMode.WARN or bool(instance.warnings.get(RELEASE))
        self.runtime.reports.warned(instance, "drift", tuple(f"drift: {drift}" for drift in instance.drift if told))

    def _instance(self, owner: Owner) -> Instance | None:
        identity = self.runtime.claims.owner_of(owner.namespace, owner.name)
        return None if identity is None else self.runtime.instances.get(identity.name)


class Charging:
    """The accounting of the reconciler's work: it is charged to the package whose release it is for."""

    def __init__(self) -> None:
        self.runtime: Runtime | None = None
        """The runtime, once there is one; before that, the work is charged to the daemon itself."""

    def __call__(self, owner: Owner) -> AbstractContextManager[None]:
        """Return a context manager in whose block the work is charged to the release's package."""
        runtime = self.runtime
        identity = runtime.claims.owner_of(owner.namespace, owner.name) if runtime is not None else None
        return acting_for(identity.name if identity is not None else "")
