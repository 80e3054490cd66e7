"""The controller of PackageRepositories: it scans their packages at an interval, and keeps their status and their indexes.

It is level-triggered. The name of a repository is put into one coalescing inbox when the repository, its login, or a resource
that uses it changes, and when its interval ends. A worker then compares the wanted scans with the scans that were done
(:mod:`~wharfinger.runtime.repositories.scan_plan`), scans, and writes the results. It scans the packages whose versions a
resource follows. For a repository without such packages, it only checks that the repository can be used: that its folder
exists, or that its server accepts the login.

While resources use a repository, the finalizer IN_USE_FINALIZER delays its deletion. While a deletion waits, the condition
``Ready`` of the repository names these resources.
"""

import logging
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.cluster.watch.work_queue import WorkKeys
from wharfinger.formats.duration import parse_duration
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, checksum, find, find_int, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.errors import ArtifactNotFoundError, PackageError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.registry.oci_registry import OciRegistry
from wharfinger.packages.sources.archives import ArchiveSource
from wharfinger.packages.sources.mirrored_registry import MirroredRegistry
from wharfinger.packages.sources.packed_registry import PackedRegistry
from wharfinger.packages.sources.source import FolderSource, HelmSource, LayoutSource, Source, is_packed, without_policy
from wharfinger.runtime.package.instance import SourceOpener
from wharfinger.runtime.repositories.index_objects import IndexObjects
from wharfinger.runtime.repositories.package_scan import Interest, scan_package
from wharfinger.runtime.repositories.repository_status import (
    Verdict,
    failure_verdict,
    in_use_verdict,
    ready_problem,
    scan_verdict,
    status_object,
)
from wharfinger.runtime.repositories.repository_uses import Uses, read_use
from wharfinger.runtime.repositories.scan_plan import MAX_PAUSE_S, Scan, Scans, Wait, plan_scan, scan_failed, scanned
from wharfinger.runtime.resources.references import References, open_references
from wharfinger.runtime.resources.repositories import read_repository, with_secrets
from wharfinger.runtime.resources.resources import (
    PACKAGE_INDEX,
    PACKAGE_REPOSITORY,
    SpecError,
    finalizers_of,
    is_deleting,
)
from wharfinger.runtime.status.failures import classify
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.versions.package_index import DETAILED, PackageIndex

log = logging.getLogger(__name__)

IN_USE_FINALIZER: Final = "wharfinger.dev/in-use"
SCAN_REQUESTED: Final = "wharfinger.dev/scan-requested-at"
"""The annotation with which a user requests a scan of a PackageRepository. A new value requests a scan that reads all details
again.
"""
DEFAULT_INTERVAL: Final = timedelta(hours=6)
LEAST_INTERVAL: Final = timedelta(seconds=10)
WORKERS: Final = 4
"""The limit on the number of repositories that are scanned at the same time."""
RETRY_S: Final = 5.0
LOOKED_UP: Final = 8
"""If a user requests the versions of a package that no resource follows, the daemon reads the details of this number of the
newest versions. The names of older versions are listed without details.
"""
MAX_LOOKED_UP: Final = 100
LOOKED_UP_S: Final = 300.0
"""The time in seconds for which the result of a lookup (`Repositories.look_up`) is kept."""
FAILED_S: Final = 30.0
"""The time, in seconds, after which a package is looked up again if its last lookup failed or took too long."""
_CHECKED: Final = "checked-by-wharfinger"
"""The package name with which a source is opened if it is only checked. No package of this name is requested."""


@dataclass(slots=True)
class Repositories:
    """All PackageRepositories. Made by `open_repositories`; `index` returns the versions of a followed package."""

    client: ClusterClient
    informer: Informer
    users: Sequence[Informer]
    """The informers of Applications and Modules."""
    open_source: SourceOpener
    now: Callable[[], datetime]
    on_index: Callable[[ObjectKey], None]
    """The callback for a changed index, or for a failure to make an index. It is called with each resource that follows the
    package, and must not block.
    """
    objects: IndexObjects
    references: References
    keys: WorkKeys
    local_packages: Sequence[Path] = ()
    token_folders: Sequence[Path] = ()
    scanning: bool = True
    """False if another daemon scans the repositories, and this one only reads the indexes."""
    uses: Uses = field(default_factory=Uses)
    _scans: dict[str, Scans] = field(default_factory=dict)
    _problems: dict[str, dict[str, str]] = field(default_factory=dict)
    _failures: dict[str, str] = field(default_factory=dict)
    """The reasons why repositories cannot be used, by the name of the repository."""
    _looked_up: dict[tuple[str, str], tuple[float, PackageIndex | None]] = field(default_factory=dict)
    """The packages that were looked up, each with the time until which the result is kept, and the result (None if the lookup
    failed).
    """
    _looking_up: KeyedLocks = field(default_factory=KeyedLocks)

    def index(self, repository: str, package: str) -> PackageIndex | None:
        """Return the versions of a package; None until it has been scanned."""
        return self.objects.indexes.get((repository, package))

    async def look_up(self, repository: str, package: str) -> PackageIndex | None:
        """Return the versions of a package. If no resource follows the package, they are read now, unless they were looked up a
        short time ago. Return None if that fails.

        If the details of a version can be read only with its files, the index has no details.
        """
        if (known := self.index(repository, package)) is not None:
            return known
        async with self._looking_up.held(
            f"{repository}/{package}"
        ):  # callers that arrive during a lookup get its result
            until, index = self._looked_up.get((repository, package), (-math.inf, None))
            if trio.current_time() < until:
                return index
            index = await self._read_newest(repository, package)
            if index is not None:
                self._note(repository, package, LOOKED_UP_S, index)
            return index

    def _note(self, repository: str, package: str, seconds: float, index: PackageIndex | None) -> None:
        """Keep the result of a lookup for ``seconds``: the versions of a package, or None if they are not known."""
        self._looked_up.pop((repository, package), None)
        while len(self._looked_up) >= MAX_LOOKED_UP:
            del self._looked_up[next(iter(self._looked_up))]
        self._looked_up[repository, package] = (trio.current_time() + seconds, index)

    async def _read_newest(self, repository: str, package: str) -> PackageIndex | None:
        """Return the versions of a package with the details of the newest ones, read now; None if that fails."""
        obj = self.informer.get(ObjectKey(PACKAGE_REPOSITORY, "", repository))
        try:
            source = self._source(repository, obj) if obj is not None else None
            if source is None:
                return None
            detailed = 0 if is_packed(source) else LOOKED_UP
            self._note(repository, package, FAILED_S, None)  # kept if the caller is cancelled before the lookup ends
            async with self.open_source(without_policy(source), package) as (registry, path):
                before = PackageIndex(repository, package)
                return await scan_package(registry, path, before, Interest(), detailed=detailed)
        except (SpecError, FormatError, PackageError) as error:
            log.debug("the versions of %s in repository %s cannot be read: %s", package, repository, error)
            return None

    def problem(self, repository: str, package: str) -> str:
        """Return why the last scan could not read a package; "" if the scan could read it."""
        return self._problems.get(repository, {}).get(package, "")

    def failure(self, repository: str) -> str:
        """Return why a repository cannot be used; "" if it can be used, or if that is not known yet."""
        if not self.scanning:
            return ready_problem(self.informer.get(ObjectKey(PACKAGE_REPOSITORY, "", repository)))
        return self._failures.get(repository, "")

    async def reconcile(self, name: str) -> None:
        """Reconcile one repository. Raises ClusterError; the call can always be repeated later."""
        key = ObjectKey(PACKAGE_REPOSITORY, "", name)
        obj = self.informer.get(key)
        if obj is None:
            await self._forget(name)
            return
        finalizers = finalizers_of(obj)
        if is_deleting(obj):
            if IN_USE_FINALIZER not in finalizers:
                return
            if users := self.uses.users(name):
                await self._write(key, obj, in_use_verdict(users))
            else:
                await self._set_finalizers(key, obj, tuple(each for each in finalizers if each != IN_USE_FINALIZER))
            return
        if self.uses.is_used(name) and IN_USE_FINALIZER not in finalizers:
            await self._set_finalizers(key, obj, (*finalizers, IN_USE_FINALIZER))
            return  # the change of the finalizers causes the next reconciliation
        await self._scan_if_due(name, key, obj)

    async def _scan_if_due(self, name: str, key: ObjectKey, obj: JsonObject) -> None:
        try:
            interval = read_interval(obj)
            source = self._source(name, obj)
        except (SpecError, FormatError) as error:
            self._fail(name, str(error))
            await self._write(key, obj, failure_verdict(Reason.REPOSITORY_INVALID, str(error)))
            return
        if source is None:
            return  # the login has not been looked up yet; when it is, the name is enqueued again
        requested = find_str(find_object(obj, "metadata", "annotations"), SCAN_REQUESTED)
        identity = _identity(obj, source)
        scans, now_s = self._scans.get(name, Scans()), trio.current_time()
        match plan_scan(scans, identity, requested, self.uses.interests(name), now_s):
            case Wait(delay_s):
                self.keys.add_later(name, delay_s)
            case Scan() as scan:
                interval_s = interval.total_seconds()
                done = await self._scan(name, key, obj, source, scan)
                now_s = trio.current_time()
                if done:
                    self._scans[name] = scanned(scans, identity, requested, scan, interval_s, now_s)
                else:
                    self._scans[name] = scan_failed(scans, identity, requested, interval_s, now_s)
                self.keys.add_later(name, max(0.0, self._scans[name].due_s - now_s))

    async def _scan(self, name: str, key: ObjectKey, obj: JsonObject, source: Source, scan: Scan) -> bool:
        """Scan packages, and write the results; return False if the scan of the repository failed."""
        started, problems = self.now(), self._problems.setdefault(name, {})
        changed: list[PackageIndex] = []
        try:
            if scan.whole:
                problems.clear()
                if not scan.packages:
                    await self._check(source)
            refused: list[PackageError | FormatError] = []
            for package, interest in scan.packages.items():
                try:
                    index = await self._scanned(name, package, source, interest, full=scan.full)
                except (PackageError, FormatError) as error:
                    if isinstance(error, PackageError) and error.transient:
                        raise
                    problems[package] = str(error)  # the other packages are scanned nevertheless
                    refused.append(error)
                    continue
                if index is None:
                    continue
                problems.pop(package, None)
                if index != self.index(name, package):
                    changed.append(index)
                    await self.objects.put(index, find_str(obj, "metadata", "uid"))
            if refused and len(refused) == len(scan.packages):
                raise refused[0]  # if all packages fail, the repository counts as failed
        except (PackageError, FormatError) as error:
            failure = classify(error)
            self._fail(name, failure.message)
            self._notify(changed)
            await self._write(key, obj, failure_verdict(failure.reason, failure.message), changed=changed, started=None)
            return False
        self._notify(changed)
        self._failures.pop(name, None)
        if scan.whole:
            await self.objects.drop(name, keep=scan.packages)
        indexes = [index for each in self.uses.interests(name) if (index := self.index(name, each)) is not None]
        await self._write(
            key,
            obj,
            scan_verdict(indexes, problems),
            changed=changed,
            started=started,
            indexes=indexes,
            is_first=name not in self._scans,
        )
        return True

    async def _scanned(
        self, name: str, package: str, source: Source, interest: Interest, *, full: bool
    ) -> PackageIndex | None:
        """Return the new index of a package. If the repository does not have the package, record that, and return None.
        Raises PackageError.
        """
        before = self.index(name, package) or PackageIndex(name, package)
        # A scan downloads no packages, so it does not know details that are only in the files of a package. The tags of Helm
        # repositories and of archives cannot move.
        detailed = 0 if is_packed(source) else DETAILED
        interest = Interest() if isinstance(source, HelmSource | ArchiveSource) else interest
        try:
            async with self.open_source(without_policy(source), package) as (registry, path):
                return await scan_package(registry, path, before, interest, full=full, detailed=detailed)
        except ArtifactNotFoundError as error:
            self._problems[name][package] = str(error)
            for user in self.uses.followers(name, package):
                self.on_index(user)
            return None

    async def _check(self, source: Source) -> None:
        """Check that a repository without followed packages can be used. Raises PackageError."""
        if isinstance(source, LayoutSource | FolderSource):
            folder = trio.Path(source.path)
            if not await folder.is_dir():
                raise ArtifactNotFoundError(f"{folder}: not found; there is no such folder")
            return
        async with self.open_source(without_policy(source), _CHECKED) as (registry, path):
            if isinstance(registry, OciRegistry | MirroredRegistry):
                await registry.check(path)
            elif isinstance(registry, PackedRegistry):
                await registry.check()

    def _fail(self, name: str, message: str) -> None:
        """Record why a repository cannot be used, and notify the resources that wait for its first scan."""
        if self._failures.get(name) == message:
            return
        self._failures[name] = message
        for package in self.uses.interests(name):
            if self.index(name, package) is None:
                for user in self.uses.followers(name, package):
                    self.on_index(user)

    def _notify(self, changed: Sequence[PackageIndex]) -> None:
        for index in changed:
            for user in self.uses.followers(index.repository, index.package):
                self.on_index(user)

    async def _write(
        self,
        key: ObjectKey,
        obj: JsonObject,
        verdict: Verdict,
        *,
        changed: Sequence[PackageIndex] = (),
        started: datetime | None = None,
        indexes: Sequence[PackageIndex] | None = None,
        is_first: bool = False,
    ) -> None:
        """Write the status, if it differs. ``is_first`` is True after the daemon's first scan of the repository: then the
        status is not written if only the time of the scan differs.

        Raises ClusterError.
        """
        written, now = find_object(obj, "status"), self.now()
        status = status_object(
            written,
            find_int(obj, "metadata", "generation"),
            verdict,
            now,
            scanned=started,
            changed=now if changed else None,
            indexes=indexes,
            problems=self._problems.get(key.name),
        )
        if status == written or (is_first and {**status, **_times(written)} == written):
            return
        gone: JsonObject = {name: None for name in written if name not in status}
        try:
            await self.client.merge_patch(key, {"status": {**gone, **status}}, subresource="status")
        except NotFoundError as error:
            log.debug("the status of %s was not written: %s", key, error)

    async def _set_finalizers(self, key: ObjectKey, obj: JsonObject, finalizers: Sequence[str]) -> None:
        entries: list[JsonValue] = list(finalizers)
        version = find_str(obj, "metadata", "resourceVersion")
        try:
            await self.client.merge_patch(key, {"metadata": {"finalizers": entries, "resourceVersion": version}})
        except (NotFoundError, ConflictError) as error:
            # The object was changed or deleted meanwhile, which causes another reconciliation.
            log.debug("the finalizers of %s were not written: %s", key, error)

    async def _forget(self, name: str) -> None:
        self.references.want(name, ())
        self._scans.pop(name, None)
        self._problems.pop(name, None)
        self._failures.pop(name, None)
        await self.objects.drop(name)

    def _source(self, name: str, obj: JsonObject) -> Source | None:
        """Return the source of a repository with its login; None until the login's Secret has been read. Raises SpecError."""
        repository = read_repository(obj, self.local_packages, self.token_folders)
        wanted = tuple(repository.secrets.values())
        self.references.want(name, wanted)
        for each in wanted:
            if not self.references.looked_up(each):
                if problem := self.references.problem(each):
                    raise SpecError(f"{each} cannot be looked up: {problem}")
                return None
        return with_secrets(repository, {each: self.references.get(each) for each in wanted})

    async def work(self) -> None:
        """Reconcile the repositories in the inbox, forever; a failed reconciliation is repeated after a pause."""
        while True:
            name = await self.keys.take()
            try:
                await self.reconcile(name)
            except (ClusterError, FormatError) as error:
                log.warning("PackageRepository %s: %s; trying again in %.0f s", name, error, RETRY_S)
                self.keys.add_later(name, RETRY_S)
            except Exception:
                # The outermost handler: a bug that one repository triggers must not stop the daemon.
                log.exception(
                    "PackageRepository %s: a bug in Wharfinger: the reconciliation failed; it is retried", name
                )
                self.keys.add_later(name, MAX_PAUSE_S)
            finally:
                self.keys.done(name)

    async def follow_indexes(self, informer: Informer) -> None:
        """Watch the indexes that other daemons write, and use each of them as if this daemon had scanned the packages."""
        with informer.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    self._notify(self.objects.adopt(informer.get(key)))

    async def follow_repositories(self) -> None:
        """Enqueue every repository that changes."""
        with self.informer.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    self.keys.add(key.name)

    async def follow_users(self, informer: Informer) -> None:
        """Watch all Applications or all Modules, and record which repositories they use. Enqueue each repository whose uses
        change.
        """
        with informer.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    obj = informer.get(key)
                    for name in sorted(self.uses.put(key, read_use(key, obj) if obj is not None else None)):
                        self.keys.add(name)


def read_interval(obj: JsonObject) -> timedelta:
    """Return ``spec.scanInterval`` of a repository. Raises FormatError."""
    text = find_str(obj, "spec", "scanInterval")
    if not text:
        return DEFAULT_INTERVAL
    interval = parse_duration(text)
    if interval < LEAST_INTERVAL:
        least = f"{LEAST_INTERVAL.total_seconds():.0f}s"
        raise FormatError(f"spec.scanInterval: expected at least {least}, found {text}; set a longer one")
    return interval


def _times(written: JsonObject) -> JsonObject:
    """Return an object with the field ``lastScanTime`` of the written status, if the status has this field."""
    return {name: value for name, value in written.items() if name == "lastScanTime"}


def _identity(obj: JsonObject, source: Source) -> str:
    """Return a text that changes with the spec, the source and its login; if the text changes, a scan is needed. It consists of
    a checksum of the spec and a hash of the source with its login, and does not show the login.
    """
    return f"{checksum([find(obj, 'spec')])} {hash(source)}"


@asynccontextmanager
async def open_repositories(
    client: ClusterClient,
    informer: Informer,
    users: Sequence[Informer],
    open_source: SourceOpener,
    now: Callable[[], datetime],
    on_index: Callable[[ObjectKey], None],
    *,
    local_packages: Sequence[Path] = (),
    token_folders: Sequence[Path] = (),
    scanning: bool = True,
) -> AsyncIterator[Repositories]:
    """Run the controller while the body runs.

    The informers must already have listed their objects. Raises ClusterError if the indexes cannot be read.

    Without ``scanning``, another daemon scans, and this daemon watches the indexes that the other daemon writes.
    """
    keys = WorkKeys()
    objects = IndexObjects(client)
    await objects.read()
    async with (
        open_references(client, keys.add) as references,
        nullcontext() if scanning else open_informer(client, PACKAGE_INDEX) as indexes,
        trio.open_nursery() as nursery,
    ):
        made = Repositories(
            client,
            informer,
            users,
            open_source,
            now,
            on_index,
            objects,
            references,
            keys,
            tuple(local_packages),
            tuple(token_folders),
            scanning,
        )
        nursery.start_soon(made.follow_repositories, name="follow PackageRepositories for scans")
        for each in users:
            for key, obj in each.objects().items():
                made.uses.put(key, read_use(key, obj))
            nursery.start_soon(made.follow_users, each, name=f"follow users of repositories: {each.resource.kind}")
        for key in informer.objects():
            keys.add(key.name)
        if indexes is not None:
            nursery.start_soon(made.follow_indexes, indexes, name="follow PackageIndexes")
        for number in range(WORKERS if scanning else 0):
            nursery.start_soon(made.work, name=f"repository worker {number}")
        yield made
        nursery.cancel_scope.cancel()
