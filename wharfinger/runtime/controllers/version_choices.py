"""The choice of each resource's version, from its version policy and the index of its package.

The rules are in :mod:`~wharfinger.runtime.versions.version_chooser`. This module provides the facts for these rules: the
index, the version that was chosen before, and whether a newer version could be on. A newer version is not chosen while its
requirements are not met, or while it would break other packages, so an update never switches a running package off. Before the
first installation, only requirements on the versions of Kubernetes and of the platform count: the other packages that a
version needs may not be installed yet, and a choice must not depend on the order in which resources are created.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import find_str
from wharfinger.packages.definition.requirements import Requirements
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.repositories.repository_controller import Repositories
from wharfinger.runtime.repositories.version_nodes import needs_of
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.graph import DEFAULT_ORDER, CycleError, Node
from wharfinger.runtime.scheduler.scheduler import ConstraintsError
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.versions.package_index import PackageIndex
from wharfinger.runtime.versions.version_chooser import Choice, choose
from wharfinger.runtime.versions.version_note import VersionNote, moved_note, note_of
from wharfinger.runtime.versions.version_policy import Channel, MovedTag

MAX_WAIT_S: Final = 3600.0
"""The longest time in seconds until a package that waits for an update window is checked again. A longer wait could miss the
window, because the wall clock may be changed meanwhile.
"""


class NoVersionError(Exception):
    """No version can be chosen, and none is installed; ``scanning`` is True if the repository has not been scanned yet."""

    def __init__(self, message: str, *, scanning: bool) -> None:
        super().__init__(message)
        self.scanning = scanning


@dataclass(frozen=True, slots=True)
class VersionChoices:
    """The version choices for all packages of a runtime. ``later`` requests a reconciliation of a package after a delay."""

    runtime: Runtime
    repositories: Repositories
    later: Callable[[str, float], None]

    def settle(self, spec: PackageSpec) -> tuple[PackageSpec, VersionNote | None]:
        """Return the resource with an exact version, and a note for its status about the choice (None if there is nothing to
        note). Raises NoVersionError.
        """
        if not spec.policy.needs_index:
            return spec, None
        index = self.repositories.index(spec.repository, spec.package)
        if spec.policy.follows is None:
            return self._exact(spec, index)
        before = self._chosen_before(spec)
        if index is None:
            if not before:
                problem = self.repositories.problem(spec.repository, spec.package)
                text = f"the versions of {spec.package} in repository {spec.repository} are not known yet"
                why = problem or self.repositories.failure(spec.repository)
                raise NoVersionError(f"{text}: {why}" if why else text, scanning=not problem)
            return replace(spec, version=before), self._noted(spec)
        choice = choose(spec.policy, index, before, self.runtime.now(), lambda each: self._refusal(spec, index, each))
        if not choice.version:
            follows = spec.policy.follows
            if isinstance(follows, Channel) and follows.name in index.channel_names:
                # The last scan did not include this tag.
                text = f"it is not known yet which version of {spec.package} the {follows} points at"
                raise NoVersionError(text, scanning=True)
            raise NoVersionError(choice.message, scanning=False)
        if choice.at is not None:
            wait_s = (choice.at - self.runtime.now()).total_seconds()
            self.later(spec.id.name, min(max(wait_s, 1.0), MAX_WAIT_S))
        return self._of_choice(spec, index, choice)

    def note(self, name: str, note: VersionNote | None) -> None:
        """Write the note about the version that was chosen for a package into the status of the package."""
        instance = self.runtime.instances.get(name)
        if instance is not None and instance.status.update != note:
            self.runtime.set_status(instance, statuses.chosen(instance.status, note, self.runtime.now()))

    def wait(self, spec: PackageSpec, error: NoVersionError) -> None:
        """Report a package that has no version yet: as progress while its repository is scanned, otherwise as a failure."""
        if not error.scanning:
            reason = Reason.NO_VERSION
            self.runtime.block(spec.id, spec.generation, spec.status, reason, str(error))
            return
        instance = self.runtime.instances.get(spec.id.name)
        if instance is None:
            instance = self.runtime.restored(spec.id, spec.generation, spec.status)
        now = self.runtime.now()
        status = statuses.versions_unknown(instance.status, spec.generation, str(error), now)
        self.runtime.set_status(instance, status)

    def _exact(self, spec: PackageSpec, index: PackageIndex | None) -> tuple[PackageSpec, VersionNote | None]:
        """Return a resource that names an exact version, with the digest to install.

        If moved tags are followed, the digest is the present one of the version's tag. Otherwise it is the installed digest; if
        the tag has moved since the installation, also return a note about this.
        """
        found = index.digest(spec.version) if index is not None else ""
        if spec.policy.moved is MovedTag.FOLLOW:
            return _pinned(spec, digest=found), None
        installed = self._installed_digest(spec, spec.version)
        moved = _moved(spec, spec.version, installed, found)
        return _pinned(spec, kept=installed), moved_note(spec.version, moved) if moved else None

    def _of_choice(self, spec: PackageSpec, index: PackageIndex, choice: Choice) -> tuple[PackageSpec, VersionNote]:
        settled = replace(spec, version=choice.version)
        found = choice.digest or index.digest(choice.version)
        if spec.policy.moved is MovedTag.FOLLOW:
            return _pinned(settled, digest=found), note_of(spec.policy, choice, "")
        installed = self._installed_digest(spec, choice.version)
        moved = _moved(spec, choice.version, installed, found)
        # For a channel, the digest is pinned, because the version's own tag may point to another digest than the channel.
        digest = (installed or found) if choice.digest or isinstance(spec.policy.follows, Channel) else ""
        kept = installed if spec.policy.moved is MovedTag.REFUSE else ""
        return _pinned(settled, digest=digest, kept=kept), note_of(spec.policy, choice, moved)

    def _chosen_before(self, spec: PackageSpec) -> str:
        """Return the version that is installed or being installed; "" for a new package."""
        instance = self.runtime.instances.get(spec.id.name)
        if instance is not None and instance.desired.source is not None:
            return instance.desired.version
        return find_str(spec.status, "update", "chosen") or find_str(spec.status, "currentVersion", "version")

    def _noted(self, spec: PackageSpec) -> VersionNote | None:
        instance = self.runtime.instances.get(spec.id.name)
        return instance.status.update if instance is not None else None

    def _installed_digest(self, spec: PackageSpec, version: str) -> str:
        """Return the digest of the installed package. Return "" if no version or another version than ``version`` is
        installed.
        """
        instance = self.runtime.instances.get(spec.id.name)
        if instance is not None:
            return instance.status.digest if instance.status.version == version else ""
        same = find_str(spec.status, "currentVersion", "version") == version
        return find_str(spec.status, "currentVersion", "digest") if same else ""

    def _refusal(self, spec: PackageSpec, index: PackageIndex, version: str) -> str:
        """Return why the package could not be on now in a version, or which package this version would break; "" if no reason
        against the version is known.
        """
        details = index.details.get(version)
        name, scheduler = spec.id.name, self.runtime.scheduler
        if details is not None and details.unreadable:
            return details.unreadable
        try:
            needs = needs_of(spec, details) if details is not None else Requirements()
        except FormatError as error:
            return f"its requirements cannot be read: {error}"
        node = scheduler.node(name)
        if node is None:
            needs = Requirements(kubernetes=needs.kubernetes, platform=needs.platform)
        try:
            scheduler.check_constraints(Node(name, version, needs, DEFAULT_ORDER if node is None else node.order))
        except (ConstraintsError, CycleError) as error:
            return str(error)
        if node is None or spec.directives.ignore_dependents:
            return ""
        broken = scheduler.would_break(name, replace(node, version=version))
        return f"it would break {broken[0].name} ({broken[0].message})" if broken else ""


def _pinned(spec: PackageSpec, *, digest: str = "", kept: str = "") -> PackageSpec:
    return replace(spec, directives=replace(spec.directives, digest=digest, kept_digest=kept))


def _moved(spec: PackageSpec, version: str, installed: str, found: str) -> str:
    """Return a line about a tag that no longer points at the installed content; "" if the tag still does, or if the tag's
    digest is not known.
    """
    if not installed or not found or installed == found:
        return ""
    remedy = (
        "spec.update.movedTag refuses the new content; set it to report or follow to allow this content"
        if spec.policy.moved is MovedTag.REFUSE
        else "to install the new content, set the annotation wharfinger.dev/reconcile-requested-at, or set "
        "spec.update.movedTag to follow"
    )
    return (
        f"the tag of {version} has moved: {installed} is installed, but the tag in the repository points at {found} now; "
        f"{remedy}"
    )
