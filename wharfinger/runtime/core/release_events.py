"""The events of applied releases: changed health, drift, and revisions that somebody else made with helm.

The release engine watches the objects that it applied, and reports changes. This module turns each report into an event of the
package that has the release, with secrets masked. :mod:`~wharfinger.runtime.package.reports` turns the event into a status.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.watch.readiness import Failed
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.lane import acting_for
from wharfinger.runtime.package.events import DriftReported, Event, ForeignRevision, HealthSeen, Troubled
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.release_claims import ReleaseClaims
from wharfinger.runtime.tasks.rendering import of_foreign_revision, waiting_for

log = logging.getLogger(__name__)


def health_seen(health: Health, masked: Callable[[str], str]) -> HealthSeen:
    """Return the event for the health of a release: the most serious state of its objects, with secrets masked."""
    laggards = health.laggards
    any_stalled = bool(health.stalled)
    if failed := {key: state for key, state in laggards.items() if isinstance(state, Failed)}:
        return HealthSeen(failed=masked(waiting_for(failed)), any_stalled=any_stalled)
    if stalled := {key: state for key, state in laggards.items() if key in health.stalled}:
        return HealthSeen(stalled=masked(waiting_for(stalled)), any_stalled=any_stalled)
    return HealthSeen(rolling=masked(waiting_for(laggards)), any_stalled=any_stalled)


class ReleaseEvents:
    """The receiver of the release engine's reports."""

    def __init__(
        self,
        find: Callable[[Owner], Instance | None],
        emit: Callable[[Instance, Event], None],
    ) -> None:
        self._find = find
        self._emit = emit

    def health_changed(self, owner: Owner, health: Health) -> None:
        """Report that the readiness of a release's objects has changed, or that the reason why they are not ready has changed."""
        if (instance := self._find(owner)) is not None:
            self._emit(instance, health_seen(health, instance.masked))

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        """Report all fields of a release that now differ from the applied values, and all fields that another manager changes
        again and again.
        """
        if (instance := self._find(owner)) is not None:
            found = tuple(instance.masked(str(drift)) for drift in drifts)
            self._emit(instance, DriftReported(found, tuple(instance.masked(str(fight)) for fight in fights)))

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        """Report that somebody else made a revision of one of our releases. That revision is not undone."""
        if (instance := self._find(owner)) is not None:
            self._emit(instance, ForeignRevision(instance.masked(of_foreign_revision(release_revision, by))))

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        """Log objects that were deleted because their release no longer contains them."""
        instance = self._find(owner)
        with acting_for(instance.id.name if instance is not None else ""):
            for key in keys:
                log.info(
                    "%s: deleted %s: it has the label of release %s, which no longer contains it",
                    owner if instance is None else instance.id,
                    key,
                    owner,
                )

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        """Report objects that cannot be corrected or pruned. The package stays installed, but a user has to fix the problem."""
        instance = self._find(owner)
        if instance is None:
            for text in troubles:
                log.warning("%s: %s", owner, text)
        else:
            self._emit(instance, Troubled(tuple(instance.masked(text) for text in troubles)))


class Charging:
    """A function that attributes the release engine's work on a release to the package of the release. Limits on work and log
    records use the attribution.
    """

    def __init__(self, claims: ReleaseClaims) -> None:
        self._claims = claims

    def __call__(self, owner: Owner) -> AbstractContextManager[None]:
        """Return a context manager for work on a release. Work in its block counts as work of the release's package; if no
        package has the release, it counts as work of the daemon.
        """
        identity = self._claims.owner_of(owner.namespace, owner.name)
        return acting_for(identity.name if identity is not None else "")
