"""The controllers of Applications and Modules, which turn custom resources into calls of the `Runtime`, and write their status.

Everything is level-triggered. Informers keep a copy of the objects. Every change (of a resource, of a repository, of a Secret
that one of them refers to, or of a package's status) puts the package's name into one coalescing inbox. A few workers each
reconcile one name at a time: a worker sets the finalizer, passes the wanted state to the runtime, and then writes the status if
it has changed. Each reconciliation begins with the current objects, so a failed one is simply repeated later.

The finalizer makes removal safe: the controller sets it before anything is installed, and removes it once the runtime reports
that nothing of the package is left.
"""

import logging
import random
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.watch.informer import Informer
from wharfinger.cluster.watch.work_queue import WorkKeys
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.sources.source import Source
from wharfinger.runtime.controllers.guard import LOOK_S, Guard
from wharfinger.runtime.controllers.holds import Hold, is_installed
from wharfinger.runtime.controllers.installed_packages import IdlePackages
from wharfinger.runtime.controllers.package_names import (
    deletion_policy,
    identity_of,
    is_ignored,
    package_name,
    releases_of,
)
from wharfinger.runtime.controllers.release_checks import ReleaseChecks
from wharfinger.runtime.controllers.rollbacks import Rollbacks
from wharfinger.runtime.controllers.takeover import Takeover
from wharfinger.runtime.controllers.version_choices import NoVersionError, VersionChoices
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.resources.application_scope import ScopeLabels
from wharfinger.runtime.resources.default_accounts import ACCOUNT_LABEL, DefaultAccounts
from wharfinger.runtime.resources.identity import (
    GLOBAL,
    AppId,
    IdentityError,
    ModuleId,
    PackageId,
    has_release,
    package_id,
)
from wharfinger.runtime.resources.lookup import Lookup, RepositoryUnusableError
from wharfinger.runtime.resources.resources import (
    APPLICATION,
    FINALIZER,
    PACKAGE_REPOSITORY,
    SKIP_DELETE_HOOKS,
    PackageSpec,
    SpecError,
    finalizers_of,
    is_deleting,
    read_account,
    read_application,
    read_module,
    resource_key,
)
from wharfinger.runtime.resources.settings import ResolvedSettings, SettingsSourceError
from wharfinger.runtime.shards.keeper import ShardKeeper
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.writer import StatusWriter

log = logging.getLogger(__name__)

WORKERS: Final = 4
RETRY_FIRST_S: Final = 0.5
RETRY_MAX_S: Final = 30.0
STALLED_LOOK_S: Final = 60.0
"""The interval at which the controller asks the runtime to check whether a parked package can be retried."""
VERIFY_S: Final = 60.0
"""The time after a start during which no status is written for a package that was Ready and is still being verified."""


@dataclass(slots=True)
class Controller:
    """The controller that reconciles Applications and Modules with the runtime; `reconcile` handles one resource."""

    client: ClusterClient
    runtime: Runtime
    applications: Informer
    modules: Informer
    lookup: Lookup
    keys: WorkKeys
    writer: StatusWriter
    scopes: ScopeLabels
    accounts: DefaultAccounts
    versions: VersionChoices
    shards: ShardKeeper
    enabled_by_default: bool | None = True
    """The default for a Module without ``spec.enabled``; None: the Module is on if the daemon's bundle contains it."""
    require_account: bool = False
    """True if a package without a service account is refused."""
    guard: Guard = field(init=False)
    resting: IdlePackages = field(init=False)
    failures: dict[str, int] = field(default_factory=dict)
    started: float = field(default_factory=trio.current_time)
    verify_s: float = VERIFY_S
    takeover: Takeover = field(init=False)
    rollbacks: Rollbacks = field(init=False)
    checks: ReleaseChecks = field(init=False)

    def __post_init__(self) -> None:
        """Make the parts that need the runtime, such as the guard, and find out which packages are installed."""
        self.writer.planned_until_s = self.started + self.verify_s
        objects: dict[ObjectKey, JsonObject] = {}
        for key, obj in (*self.applications.objects().items(), *self.modules.objects().items()):
            if self.shards.owns(key, obj):
                objects[key] = obj
            else:
                self.shards.neighbours.seen(package_name(key), obj)
        installed = [package_name(key) for key, obj in objects.items() if is_installed(obj) and not is_ignored(key)]
        self.guard = Guard(self.runtime, self._object_of, self.keys.add, installed)
        self.resting = IdlePackages(self.runtime, self.lookup)
        self.checks = ReleaseChecks(self.runtime, self.find)
        self.rollbacks = Rollbacks(self.runtime, self.keys.add, self.keys.add_later)
        self.runtime.confinement.reaches_cluster = self.scopes.allows
        self.takeover = Takeover(self.runtime, dict(releases_of(objects)))
        if resource_key(ModuleId(GLOBAL)) in objects:
            self.runtime.packages.expect_global()

    def _object_of(self, name: str) -> JsonObject | None:
        key = resource_key(package_id(name))
        return self._informer(key).get(key)

    def find(self, key: ObjectKey) -> JsonObject | None:
        """Return an Application, a Module or a PackageRepository as it was seen last; None if it does not exist."""
        repositories = self.lookup.repositories
        return (repositories if key.resource == PACKAGE_REPOSITORY else self._informer(key)).get(key)

    async def reconcile(self, name: str) -> None:
        """Reconcile one resource. Raises ClusterError; the call can always be repeated later."""
        key, obj = resource_key(package_id(name)), self._object_of(name)
        if obj is None:
            # The object is gone, because our removal is complete or because a user removed the finalizer. A package that this
            # runtime never knew is ignored, because another program may have a release of that name by now.
            self.lookup.references.want(name, ())
            self.shards.gone(name)
            self.rollbacks.forget(name)
            self.guard.object_gone(name)
            self.runtime.object_gone(package_id(name))
            self.takeover.reconciled(name, gone=True)
            self.guard.reconciled(name)
            return
        identity = identity_of(key, obj)
        if not await self.shards.is_ours(identity, key, obj):
            self._leave_to_others(name)
            return
        if self.shards.arrives(name):
            self.runtime.tools.states.forget(name)
            for _, owner in releases_of({key: obj}):
                self.takeover.arrives(name, owner)
        if is_deleting(obj):
            await self._remove(identity, key, obj)
        else:
            if FINALIZER not in finalizers_of(obj) and not await self._set_finalizers(
                key, obj, (*finalizers_of(obj), FINALIZER)
            ):
                return  # nothing is installed before the finalizer ensures that it will be removed
            await self.rollbacks.prepare(identity, obj)
            await self.guard.prepare(identity, obj)
            await self._tell_runtime(identity, obj)
            await self.rollbacks.carry_out(name)
            if self.runtime.retry_stalled(name):
                self.keys.add_later(name, STALLED_LOOK_S)
            await self._write_status(name, key, obj)
        self.takeover.reconciled(name)
        self.guard.reconciled(name)

    def _leave_to_others(self, name: str) -> None:
        """Forget a package that another shard's daemon manages, or that this daemon does not manage yet."""
        self.lookup.references.want(name, ())
        self.writer.unwritten.discard(name)
        self.rollbacks.forget(name)
        self.takeover.reconciled(name, gone=True)
        if name not in self.runtime.instances:
            self.guard.moved(name)

    async def _tell_runtime(self, identity: PackageId, obj: JsonObject) -> None:
        """Pass the wanted state of a resource to the runtime, or report why the resource cannot be acted on. Raises
        ClusterError.
        """
        written = find_object(obj, "status")
        try:
            asked = self._read(identity, obj)
            self.checks.check(asked.id, written)
            with self.writer.in_hand(asked.id.name):
                self._settle(asked)
        except (SpecError, IdentityError) as error:
            await self._block(identity, obj, "SpecInvalid", str(error))
        except SettingsSourceError as error:
            await self._block(identity, obj, "SettingsSourceMissing", str(error))
        except RepositoryUnusableError as error:
            await self._block(identity, obj, error.reason, str(error))

    def _settle(self, asked: PackageSpec) -> None:
        """Choose the version, and pass the wanted state to the runtime. Raises SpecError, IdentityError, SettingsSourceError or
        RepositoryUnusableError.
        """
        try:
            spec, note = self.versions.settle(asked)
        except NoVersionError as error:
            self.lookup.find_repository(asked)  # if both are wrong, report the missing repository
            self.versions.wait(asked, error)
            return
        found, missing = None, None
        try:
            found = self.lookup.of(spec)
        except (SettingsSourceError, RepositoryUnusableError) as error:
            missing = error
        acted, settings = spec, None
        if found is not None:
            acted, settings = self.rollbacks.settle(spec, *found)
        if (hold := self.guard.admit(acted)) is not None:
            self._hold(acted, hold)
            return
        if missing is not None:
            self.runtime.adopt_what_stops(acted)
            raise missing
        if found is not None and settings is not None:
            self._act_on(acted, found[0], settings)
            self.rollbacks.share(spec.id.name)
        self.versions.note(spec.id.name, note)

    async def _block(self, identity: PackageId, obj: JsonObject, reason: str, message: str) -> None:
        """Report why a resource cannot be acted on. The installed package keeps running, and still meets the requirements of
        its dependents.
        """
        await self.guard.prepare_blocked(identity, obj)
        generation, written = find_int(obj, "metadata", "generation"), find_object(obj, "status")
        self.runtime.block(identity, generation, written, reason, message)

    def _read(self, identity: PackageId, obj: JsonObject) -> PackageSpec:
        """Read the desired state from a package's resource. Raises SpecError."""
        if isinstance(identity, AppId):
            spec = read_application(obj)
            allowed = self.scopes.allows(identity.namespace)
            spec = replace(spec, directives=replace(spec.directives, cluster_scope=allowed))
        else:
            spec = read_module(obj, enabled_by_default=self.enabled_by_default)
        namespace = spec.id.namespace
        account = spec.directives.account or self.accounts.of(namespace)
        if self.require_account and not account:
            raise SpecError(
                "spec.serviceAccountName: required, because the daemon was started with --require-service-account; name a "
                f"ServiceAccount of the namespace {namespace}, or label that namespace {ACCOUNT_LABEL}=NAME"
            )
        return replace(spec, directives=replace(spec.directives, account=account))

    def _account(self, identity: PackageId, obj: JsonObject) -> str | None:
        """Return the service account that a removal acts as; None if the account in the resource cannot be read."""
        try:
            return read_account(obj) or self.accounts.of(identity.namespace)
        except (SpecError, FormatError) as error:
            log.warning("%s: %s; its removal uses the service account that the package used before", identity, error)
            return None

    def _act_on(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> None:
        """Pass the wanted state to the runtime."""
        update = self.runtime.update_app if isinstance(spec.id, AppId) else self.runtime.update_module
        update(spec, source, settings)

    def _hold(self, spec: PackageSpec, hold: Hold) -> None:
        """Report that a change of the resource is held. If the resource also suspends the package, adopt only the suspension,
        because a suspension breaks no dependent. If the change was already held when this process started, run the package in
        its installed version.
        """
        self.keys.add_later(spec.id.name, LOOK_S)
        if not hold.unknown:
            self.resting.run_as_installed(replace(spec, enabled=False) if hold.off else spec)
        self.runtime.adopt_what_stops(replace(spec, enabled=None))
        self.guard.report_hold(spec, hold)

    async def _remove(self, identity: PackageId, key: ObjectKey, obj: JsonObject) -> None:
        if FINALIZER not in finalizers_of(obj):
            return
        generation, written = find_int(obj, "metadata", "generation"), find_object(obj, "status")
        settings = self._last_settings(identity, obj)
        if find(obj, "metadata", "annotations", SKIP_DELETE_HOOKS) is not None:
            self.runtime.skip_delete_hooks(identity.name)
        if (hold := await self.guard.admit_removal(identity, obj)) is not None:
            await self._hold_removal(identity, key, obj, hold)
            return
        deletion, account = deletion_policy(identity, obj), self._account(identity, obj)
        if has_release(identity):
            self.checks.claim_for_others(identity, written)
        gone = (
            self.runtime.remove_app(identity, generation, written, settings, deletion, account)
            if isinstance(identity, AppId)
            else self.runtime.remove_module(identity, generation, written, settings, deletion, account)
        )
        if gone:
            rest = tuple(entry for entry in finalizers_of(obj) if entry != FINALIZER)
            await self._set_finalizers(key, obj, rest)
        else:
            await self._write_status(identity.name, key, obj)

    async def _hold_removal(self, identity: PackageId, key: ObjectKey, obj: JsonObject, hold: Hold) -> None:
        """Report that the removal is held, without beginning it.

        If the removal was already held when this process started, run the package in its installed version.
        """
        self.keys.add_later(identity.name, LOOK_S)
        if not hold.unknown:
            try:
                self.resting.run_as_installed(self._read(identity, obj))
            except SpecError as error:
                log.info("%s: the package stays installed, but does not run: %s", identity, error)
        self.guard.report_held_removal(identity.name, find_int(obj, "metadata", "generation"), hold)
        await self._write_status(identity.name, key, obj)

    def _last_settings(self, identity: PackageId, obj: JsonObject) -> ResolvedSettings | None:
        """Return the settings that a package's hooks see during its removal; None if they cannot be read or resolved."""
        try:
            spec = self._read(identity, obj)
            return self.lookup.last_settings(spec)
        except (SpecError, SettingsSourceError) as error:
            log.debug("%s: the settings for its hooks during the removal cannot be read: %s", identity, error)
            return None

    async def _set_finalizers(self, key: ObjectKey, obj: JsonObject, finalizers: tuple[str, ...]) -> bool:
        """Set the wanted finalizers. Return False if the informer's copy of the object is out of date; the update of this copy
        will trigger another reconciliation.
        """
        entries: list[JsonValue] = list(finalizers)
        version = find_str(obj, "metadata", "resourceVersion")
        # With the resourceVersion, the patch is a compare-and-set, so no finalizer of another program is lost.
        patch: JsonObject = {"metadata": {"finalizers": entries, "resourceVersion": version}}
        try:
            await self.client.merge_patch(key, patch)
        except (NotFoundError, ConflictError) as error:
            log.debug("the finalizers of %s were not written: %s", key, error)
            return False
        return True

    async def _write_status(self, name: str, key: ObjectKey, obj: JsonObject) -> None:
        status = self.runtime.status(name)
        self.writer.unwritten.discard(name)
        if status is None:
            return
        if status.is_being_verified and (left_s := self.started + self.verify_s - trio.current_time()) > 0:
            self.keys.add_later(name, left_s)
            return  # once the package is verified, its status is usually unchanged, and needs no write
        patch = statuses.difference(status, find_object(obj, "status"))
        if not patch:
            return
        if not self.writer.may_write(name, trio.current_time()):
            self.writer.unwritten.add(name)
            return  # the name is reconciled again when the status may be written
        try:
            await self.client.merge_patch(key, {"status": patch}, subresource="status")
        except NotFoundError as error:
            log.debug("the status of %s was not written: %s", key, error)
        except BaseException:
            self.writer.unwritten.add(name)
            raise

    def _informer(self, key: ObjectKey) -> Informer:
        return self.applications if key.resource == APPLICATION else self.modules

    async def work(self) -> None:
        """Take names from the inbox and reconcile them, forever; repeat failed reconciliations after a growing pause."""
        while True:
            name = await self.keys.take()
            try:
                await self.reconcile(name)
            except (ClusterError, FormatError) as error:
                self._look_later(name, str(error))
            except Exception as error:
                # The outermost handler: a bug that one object triggers must not stop the daemon, which works for all other
                # objects, too.
                log.exception("%s: a bug in Wharfinger: the reconciliation failed; it is retried", name)
                self.runtime.block(
                    package_id(name), 0, {}, "Internal", f"{type(error).__name__} during the reconciliation"
                )
                self._look_later(name, type(error).__name__)
            else:
                self.failures.pop(name, None)
                self._look_again(name)
            finally:
                self.keys.done(name)

    def _look_again(self, name: str) -> None:
        """Schedule another reconciliation even without an event, so that a missed change is noticed eventually."""
        if self.runtime.status(name) is not None:
            self.writer.looked(name)

    def _look_later(self, name: str, why: str) -> None:
        count = self.failures[name] = self.failures.get(name, 0) + 1
        pause_s = min(RETRY_FIRST_S * 2 ** min(count, 10), RETRY_MAX_S) * random.uniform(0.8, 1.2)  # noqa: S311
        log.warning("%s: %s; retrying in %.1f s", name, why, pause_s)
        self.keys.add_later(name, pause_s)
