"""The Events about packages: changes of status and corrections of drift, recorded on the package's resource, where ``kubectl
describe`` shows them.

A correction is logged, too, because no user requested it.
"""

import logging
from collections.abc import Callable
from typing import Final

from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.lane import acting_for
from wharfinger.runtime.cluster_events.reasons import EventReason
from wharfinger.runtime.cluster_events.recorder import Recorder, subject_of
from wharfinger.runtime.cluster_events.story import Note, Story, begin, next_story
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.resources.identity import package_id
from wharfinger.runtime.resources.resources import DEFAULT_REPOSITORY, PACKAGE_REPOSITORY, resource_key
from wharfinger.runtime.status.package_status import PackageStatus

log = logging.getLogger(__name__)

_SPARE: Final = 64
"""The number of `Story` objects that may be kept in addition to two for each package. If there are more, those of packages that
are gone are discarded.
"""


def nothing_found(_key: ObjectKey) -> JsonObject | None:
    """Return None for any object: this stand-in is used until the cache of objects exists."""
    return None


class PackageEvents:
    """The connection between a runtime and the recorder, which writes the Events. Changes of status and corrections of drift are
    not recorded before ``runtime`` and ``find`` are set.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._stories: dict[str, Story] = {}
        self.runtime: Runtime | None = None
        self.find: Callable[[ObjectKey], JsonObject | None] = nothing_found
        """A function that returns the last known state of an Application, a Module or a PackageRepository; None if it is not
        known.
        """

    def status_changed(self, name: str, before: PackageStatus, after: PackageStatus) -> None:
        """Record the Events that a change of a package's status causes."""
        story = self._stories.get(name)
        after_story, notes = next_story(begin(before) if story is None else story, before, after)
        if after_story != story:
            self._stories[name] = after_story
            self._sweep()
        obj = self.find(resource_key(package_id(name))) if notes else None
        if obj is not None:
            for note in notes:
                self._record(obj, note)

    def drift_corrected(self, owner: Owner, drift: Drift) -> None:
        """Record that an object of a release was applied again, because another program had changed or deleted it."""
        identity = self.runtime.claims.owner_of(owner.namespace, owner.name) if self.runtime is not None else None
        instance = self.runtime.instances.get(identity.name) if self.runtime and identity else None
        if instance is None:
            return
        text = instance.masked(f"{drift}; applied again" if drift.missing else f"corrected {drift}")
        with acting_for(instance.id.name):
            log.info("%s: %s", instance.id, text)
        if (obj := self.find(resource_key(instance.id))) is not None:
            self._recorder.record(subject_of(obj), EventReason.DRIFT_CORRECTED, text)

    def moved(self, obj: JsonObject, shard: str) -> None:
        """Record that the daemon of another shard manages an Application from now on."""
        keeper = f"shard {shard}" if shard else "the main daemon"
        self._recorder.record(
            subject_of(obj), EventReason.MOVED, f"{keeper} manages the package from now on; nothing else changes"
        )

    def _record(self, obj: JsonObject, note: Note) -> None:
        subject = subject_of(obj)
        self._recorder.record(subject, note.reason, note.text)
        if note.of_repository:
            name = find_str(obj, "spec", "packageRepositoryName") or DEFAULT_REPOSITORY
            repository = self.find(ObjectKey(PACKAGE_REPOSITORY, "", name))
            if repository is not None:
                self._recorder.record(subject_of(repository), EventReason.REPOSITORY_FAILED, note.text, subject)

    def _sweep(self) -> None:
        """If too many stories are kept, discard the `Story` of each package that is gone."""
        known = self.runtime.instances if self.runtime is not None else {}
        if len(self._stories) > 2 * len(known) + _SPARE:
            self._stories = {name: story for name, story in self._stories.items() if name in known}
