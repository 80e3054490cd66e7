"""The rollbacks of a runtime: returns of packages to a former revision, instead of the state that their resources request.

A rollback replaces the package, the version and the settings of a resource by those of a former revision, and passes the result
to the runtime. So the package returns to that revision in the usual way, with its own hooks, from files that are on the disk.
The package stays in that revision until the resource requests another state. If the former revision fails, too, the failure
is reported, but the failed upgrade is not tried again. A change of the requested state ends the rollback, and the new state
is tried.

`settle` answers from memory, without a request to the API server. If an upgrade has failed (:mod:`.rollback_rules`), or a user
requests a rollback, `carry_out` finds the former revision, and records the rollback in the state of the package before the
package acts on it. So the rollback continues after a restart.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from wharfinger.cluster.api.errors import ReleaseError
from wharfinger.cluster.records.release import Release
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.packages.sources.source import Source
from wharfinger.runtime.controllers.rollback_rules import (
    Continues,
    HasFailed,
    NoTarget,
    find_target,
    judge_upgrade,
    was_deployed,
)
from wharfinger.runtime.core.desired_states import asked_checksum, desired_state
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.lifecycle.package_state import PackageState, PackageStateError, StateRecord
from wharfinger.runtime.lifecycle.way_back_record import Rollback
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import PackageId, has_release
from wharfinger.runtime.resources.recorded_inputs import RecordedInputs, decode_inputs, inputs_of
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.resources.upgrade_policy import ROLLBACK
from wharfinger.runtime.versions.rollback_note import FAILED, NO_WAY_BACK, REQUESTED, RollbackNote

log = logging.getLogger(__name__)

LEAST_WAIT_S: Final = 0.05
_NOTHING: Final = PackageState()


@dataclass(frozen=True, slots=True)
class _Due:
    """A rollback that is due because of a failure or a request. Its revision has not been found yet. ``spec`` is the package's
    resource as read.
    """

    spec: PackageSpec
    content: str
    """The checksum of the package, version and settings that the rollback replaces."""
    why: str
    request: str = ""
    revision: int = 0


Found: TypeAlias = tuple[int, RecordedInputs]


class Rollbacks:
    """The rollbacks of all packages. ``look`` requests an immediate reconciliation of a package, ``later`` requests one
    after some seconds.
    """

    def __init__(self, runtime: Runtime, look: Callable[[str], None], later: Callable[[str, float], None]) -> None:
        self._runtime = runtime
        self._look = look
        self._later = later
        self._records: dict[str, StateRecord] = {}
        """The recorded states of packages that have no instance yet, or whose instance has no recorded state yet."""
        self._due: dict[str, _Due] = {}

    async def prepare(self, identity: PackageId, obj: JsonObject) -> None:
        """Read the recorded state of a package that a rollback may concern, unless it is known already. Raises ClusterError."""
        name = identity.name
        instance = self._runtime.instances.get(name)
        if name in self._records or (instance is not None and instance.record is not None):
            return
        concerned = (
            find(obj, "spec", "upgrade") is not None
            or find(obj, "status", "rollback") is not None
            or bool(find_str(obj, "metadata", "annotations", ROLLBACK))
        )
        if not concerned or not has_release(identity):
            return
        tools = self._runtime.tools
        try:
            self._records[name] = await tools.states.record(tools.cluster, identity)
        except PackageStateError as error:
            log.warning("%s: cannot read whether the package was rolled back: %s", identity, error)

    def settle(
        self, spec: PackageSpec, source: Source, settings: ResolvedSettings
    ) -> tuple[PackageSpec, ResolvedSettings]:
        """Return the wanted state of the package: the state that its resource asks for, or the state of a former revision."""
        asked = asked_checksum(desired_state(spec, source, settings))
        spec = replace(spec, directives=replace(spec.directives, asked=asked))
        state, request = self._state(spec.id.name), spec.directives.rollback
        self._due.pop(spec.id.name, None)
        in_force = state.rollback if state.rollback is not None and state.rollback.asked == asked else None
        acted = spec if in_force is None else _returned(spec, in_force)
        inputs = in_force.inputs if in_force is not None else None
        content = (inputs or inputs_of(spec, settings)).content
        if request is not None and request.text != state.rollback_asked:
            why = f"the annotation {ROLLBACK} requests it"
            self._due[spec.id.name] = _Due(spec, content, why, request.text, request.revision)
        elif in_force is None and spec.directives.upgrade.rollback:
            self._judge(spec, state, content)
        return acted, settings if inputs is None else inputs.resolved

    def share(self, name: str) -> None:
        """If the runtime knows the package by now, pass the recorded state that `prepare` has read to the package's
        instance.
        """
        instance = self._runtime.instances.get(name)
        record = self._records.pop(name, None)
        if instance is not None and instance.record is None and record is not None:
            instance.know_record(record)

    def forget(self, name: str) -> None:
        """Discard the recorded state of a package that is gone, or belongs to another daemon, which may change this state."""
        self._records.pop(name, None)
        self._due.pop(name, None)

    async def carry_out(self, name: str) -> None:
        """Find the former revision, and record the rollback, if `settle` has found that a rollback is due. The rollback takes
        effect at the next reconciliation.

        Raises ClusterError.
        """
        due = self._due.pop(name, None)
        instance = self._runtime.instances.get(name)
        if due is None or instance is None:
            return
        record = await instance.recorded(self._runtime.tools)
        history = await self._runtime.tools.releases.history(instance.id.release, instance.id.namespace)
        if due.request and not history:
            await record.update(lambda state: state.answered(due.request))
            return
        found = await self._find(due, record.state, history, _digest(due.spec, instance))
        wanted, why = due.spec.version, instance.masked(due.why)
        if isinstance(found, NoTarget):
            text = found.why if due.request else f"{found.why}; the upgrade failed: {why}"
            note, inputs = RollbackNote(0, "", wanted, NO_WAY_BACK, text), None
        else:
            revision, inputs = found
            note = RollbackNote(revision, inputs.version, wanted, REQUESTED if due.request else FAILED, why)
        log.warning("%s: %s", instance.id, note.line)
        rollback = Rollback(due.spec.directives.asked, due.spec.generation, inputs, note)
        try:
            await record.update(lambda state: state.rolled_back(rollback, due.request))
        except PackageStateError as error:
            text = str(error) if due.request else f"{error}; the upgrade failed: {why}"
            note = RollbackNote(0, "", wanted, NO_WAY_BACK, text)
            none = Rollback(rollback.asked, rollback.generation, None, note)
            await record.update(lambda state: state.rolled_back(none, due.request))
        self._look(name)

    # --- internal ------------------------------------------------------------------------------------------------------------

    def _state(self, name: str) -> PackageState:
        instance = self._runtime.instances.get(name)
        record = instance.record if instance is not None and instance.record is not None else self._records.get(name)
        return record.state if record is not None else _NOTHING

    def _judge(self, spec: PackageSpec, state: PackageState, content: str) -> None:
        name, now = spec.id.name, self._runtime.now()
        instance = self._runtime.instances.get(name)
        if instance is None or instance.desired.attempt.asked != spec.directives.asked:
            return
        policy = spec.directives.upgrade
        verdict = judge_upgrade(
            policy, instance.desired.attempt, instance.status, state.ready, content, now, _digest(spec, instance)
        )
        match verdict:
            case HasFailed(why):
                self._due[name] = _Due(spec, content, why)
            case Continues(again):
                if again is not None:
                    self._later(name, max(again.total_seconds(), LEAST_WAIT_S))

    async def _find(self, due: _Due, state: PackageState, history: Sequence[Release], digest: str) -> Found | NoTarget:
        """Return the revision to return to, with the package, version and settings that it was made from. Raises ClusterError."""
        if not due.request and state.ready is not None:
            return state.ready.revision, state.ready.inputs
        if not due.revision:
            return await self._former(history, due.content, digest)
        target = find_target(history, due.revision)
        if isinstance(target, NoTarget):
            return target
        inputs = await self._inputs(target.release)
        return inputs if isinstance(inputs, NoTarget) else (due.revision, inputs)

    async def _former(self, history: Sequence[Release], content: str, digest: str) -> Found | NoTarget:
        """Return the newest revision that was deployed with another version or other settings than the present ones; otherwise
        the reason why there is none.
        """
        why = "no revision of the package with another version or other settings is recorded"
        for release in reversed(history):
            if was_deployed(release):
                inputs = await self._inputs(release)
                if isinstance(inputs, NoTarget):
                    why = inputs.why
                elif inputs.differs(content, digest):
                    return release.revision, inputs
        return NoTarget(why)

    async def _inputs(self, release: Release) -> RecordedInputs | NoTarget:
        """Return the package, version and settings that a revision was made from. Raises ClusterError."""
        what = f"the record of revision {release.revision}"
        try:
            whole = await self._runtime.tools.releases.whole(release)
            inputs = decode_inputs(whole.inputs) if whole is not None else None
        except (ReleaseError, FormatError) as error:
            return NoTarget(f"{what} cannot be read: {error}")
        if inputs is None:
            return NoTarget(
                f"{what} does not name the package, version and settings that the revision was made from, because Helm, another "
                "program or an older version of Wharfinger wrote it"
            )
        return inputs


def _digest(spec: PackageSpec, instance: Instance) -> str:
    """Return the wanted digest of a package, or its present digest if none is wanted; "" if neither is known."""
    manifest = instance.files.manifest
    return spec.directives.digest or (manifest.descriptor.digest.text if manifest is not None else "")


def _returned(spec: PackageSpec, rollback: Rollback) -> PackageSpec:
    """Return the wanted state with the package, version and settings of the former revision. The options about how the package
    is managed stay as the resource has them.
    """
    inputs, directives = rollback.inputs, replace(spec.directives, rolled_back=rollback.note)
    if inputs is None:
        return replace(spec, directives=directives)
    directives = replace(
        directives,
        digest=inputs.digest,
        kept_digest="",
        is_digest_named=True,
        settings_version=inputs.settings_version,
        overrides=inputs.overrides,
        patches=inputs.patches,
    )
    return replace(spec, package=inputs.package, version=inputs.version, directives=directives)
