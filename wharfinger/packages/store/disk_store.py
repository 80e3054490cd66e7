"""Packages on disk: blobs and trees, named by digest, and one link for each deployed name, which is replaced in one step.

::

    <root>/store/lock                    held while the store is open: one process at a time
    <root>/store/blobs/sha256/<hex>      blobs as the registry sent them
    <root>/store/trees/<hex>/            unpacked packages (see tree.py), named after their manifest
    <root>/store/tmp/                    incomplete files; emptied when the store is opened
    <root>/deployed/<name>               link to ../store/trees/<hex>/package

These are the invariants. ``tests/packages/store/test_disk_store.py`` checks the first one with a cancellation at every await of a
download, and with a SIGKILL at every call that changes the disk:

* an entry of ``blobs``, ``trees`` or ``deployed`` is complete or absent: it is made in ``tmp`` and then renamed;
* content is verified before each use: a blob is hashed again; a tree is compared with its record (``tree.json``), unless
  it was compared before and no entry of it has changed since (:mod:`~wharfinger.packages.files.folder_fingerprint`);
* each digest has its own lock: a digest that several packages need at the same time is downloaded and unpacked only once, and
  different digests can be downloaded at the same time;
* `collect` never deletes files that a deployed name uses, nor recent downloads that are not deployed yet.
"""

import fcntl
import io
import itertools
import os
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import trio

from wharfinger.formats.archives.archive import ArchiveLimits
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, StoreError
from wharfinger.packages.files.disk_files import (
    delete,
    discard,
    disk_errors,
    has_content,
    publish,
    replace_tree,
    sync_file,
    sync_folder,
)
from wharfinger.packages.files.folder_fingerprint import folder_fingerprint
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.registry.manifest import blobs_of, package_layers
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.packages.store.tree import PACKAGE_FOLDER, TreeRecord, build_tree, read_record, sound_record

T = TypeVar("T")

WRITE_BYTES: Final = 256 * 1024
"""The number of bytes that are collected before a thread writes them. A switch to a thread costs as much as writing 64 KiB."""
DISCARD_S: Final = 30.0
"""The longest time, in seconds, for which a finished task waits until its temporary files are deleted."""

_HEX: Final = re.compile(r"[0-9a-f]{64}\Z")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\Z")
MAX_NAME: Final = 200
MOST_RECORDS: Final = 1_000
"""The largest number of unpacked packages whose records are kept in memory."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Limits of the store.

    ``package_bytes`` limits the size of one package's blobs together, and ``archive`` the content of each archive. ``threads`` is
    the number of threads. `collect` keeps a download that is not deployed for ``spare_s`` seconds.
    """

    package_bytes: int = 1024**3
    archive: ArchiveLimits = field(default_factory=ArchiveLimits)
    threads: int = 4
    spare_s: float = 3600.0


class DiskStore:
    """The store of one process; made by `open_store`, implements :class:`~wharfinger.packages.store.store.Store`."""

    def __init__(self, root: Path, limits: StoreLimits, now: Callable[[], float] = time.time) -> None:
        self._limits = limits
        self._now = now
        self._blobs = root / "store" / "blobs" / "sha256"
        self._trees = root / "store" / "trees"
        self._tmp = root / "store" / "tmp"
        self._deployed = root / "deployed"
        self._locks = KeyedLocks()
        self._collecting = trio.Lock()
        self._threads = trio.CapacityLimiter(limits.threads)
        self._numbers = itertools.count(1)
        self._in_work: set[str] = set()
        self._pins: dict[str, tuple[float, frozenset[str]]] = {}
        self._sound: OrderedDict[str, tuple[str, TreeRecord]] = OrderedDict()

    def statistics(self) -> dict[str, int]:
        """Return the numbers of locked digests, temporary names in use, and downloads that are not deployed yet."""
        return {"locked": len(self._locks), "temporary": len(self._in_work), "pinned": len(self._pins)}

    async def download(self, registry: Registry, repository: str, manifest: Manifest) -> None:
        """Download the manifest's blobs. Raises PackageError; the blobs that were complete before the error are kept."""
        package_layers(manifest)  # before the download, refuse a package that cannot be unpacked
        blobs = blobs_of(manifest)
        total = sum(blob.size for blob in blobs)
        if total > self._limits.package_bytes:
            raise ArtifactError(
                f"package {manifest.descriptor.digest}: {total} bytes is over the limit of {self._limits.package_bytes}"
            )
        self._pin(manifest)
        for blob in blobs:
            async with self._locks.held(f"blob {blob.digest.hex}"):
                if not await self._run(f"reading blob {blob.digest}", partial(self._has_blob, blob)):
                    await self._fetch(registry, repository, blob)

    async def install(self, manifest: Manifest) -> Path:
        """Return the manifest's package folder; unpack the package unless its tree exists undamaged. Raises PackageError."""
        layers = package_layers(manifest)
        digest = manifest.descriptor.digest
        tree = self._trees / digest.hex
        self._pin(manifest)
        async with self._locks.held(f"tree {digest.hex}"):
            if await self._record(digest) is None:
                async with self._temporary() as temporary, self._temporary() as replaced:
                    unpack = partial(self._unpack, manifest, layers, temporary, replaced)
                    await self._run(f"unpacking package {digest}", unpack)
        return tree / PACKAGE_FOLDER

    async def installed(self, digest: Digest) -> Manifest | None:
        """Return the manifest with this digest if its tree exists undamaged, else None. Raises StoreError.

        No registry is needed.
        """
        async with self._locks.held(f"tree {digest.hex}"):
            record = await self._record(digest)
            if record is None or record.manifest.descriptor.digest != digest:
                return None
            self._pin(record.manifest)
            return record.manifest

    async def deploy(self, name: str, manifest: Manifest) -> Path:
        """Point ``deployed/<name>`` at the installed manifest; return the link. Raises StoreError."""
        link = self._link(name)
        key = manifest.descriptor.digest.hex
        async with self._collecting, self._locks.held(f"tree {key}"):
            async with self._temporary() as temporary:
                await self._run(f"deploying {name}", partial(self._point, link, self._trees / key, temporary))
            self._pins.pop(key, None)
        return link

    async def deployed(self, name: str, manifest: Manifest) -> Path | None:
        """Return the folder with the manifest's files if its tree exists undamaged and ``deployed/<name>`` points at it, else
        None. Raises StoreError.
        """
        digest, link = manifest.descriptor.digest, self._link(name)
        folder = self._trees / digest.hex / PACKAGE_FOLDER
        async with self._locks.held(f"tree {digest.hex}"):
            record = await self._record(digest, also=partial(_points_at, link, folder))
        if record is None or record.manifest.descriptor.digest != digest:
            return None
        self._pins.pop(digest.hex, None)
        return folder

    async def undeploy(self, name: str) -> None:
        """Remove ``deployed/<name>``, if it exists. Raises StoreError."""
        link = self._link(name)

        def remove() -> None:
            _refuse_foreign(link)
            link.unlink(missing_ok=True)
            sync_folder(self._deployed)

        await self._run(f"undeploying {name}", remove)

    async def collect(self) -> int:
        """Delete left-over temporary files, and trees and blobs that no deployed name uses; return how many were deleted.

        Recent downloads are kept, because they may be deployed soon.
        """
        async with self._collecting:
            deleted = await self._run("cleaning up", self._sweep_temporary)
            deployed = await self._run("listing deployed names", self._deployed_trees)
            for hexdigest in await self._run("listing packages", partial(_digests_in, self._trees)):
                async with self._locks.held(f"tree {hexdigest}"):
                    if hexdigest not in deployed and hexdigest not in self._pinned():
                        deleted += await self._delete(self._trees / hexdigest)
            used = await self._run("listing packages", self._used_blobs)
            for hexdigest in await self._run("listing blobs", partial(_digests_in, self._blobs)):
                async with self._locks.held(f"blob {hexdigest}"):
                    pinned = frozenset[str]().union(*(blobs for _, blobs in self._pinned().values()))
                    if hexdigest not in used and hexdigest not in pinned:
                        deleted += await self._delete(self._blobs / hexdigest)
            return deleted

    async def _fetch(self, registry: Registry, repository: str, blob: Descriptor) -> None:
        doing = f"downloading blob {blob.digest}"
        async with self._temporary() as temporary:
            with await self._run(doing, partial(_create, temporary)) as file:
                async with registry.blob(repository, blob) as chunks:
                    pending = bytearray()
                    async for chunk in chunks:
                        pending += chunk
                        if len(pending) >= WRITE_BYTES:
                            await self._run(doing, partial(_write, file, pending))
                            pending = bytearray()
                    await self._run(doing, partial(_write, file, pending))

            def finish() -> None:
                sync_file(temporary)
                publish(temporary, self._blobs / blob.digest.hex)

            await self._run(doing, finish)

    async def _record(self, digest: Digest, also: Callable[[], bool] = lambda: True) -> TreeRecord | None:
        """Return the record of a tree if the tree is undamaged and ``also`` returns True, else None. ``also`` may block. The
        caller holds the tree's lock.

        The files are not read again if no entry of the folder has changed since the last time.
        """
        tree = self._trees / digest.hex
        known = self._sound.pop(digest.hex, None)

        def read() -> tuple[str, TreeRecord] | None:
            if not also():
                return None
            fingerprint = folder_fingerprint(tree, self._now(), with_links=True)
            if known is not None and known[0] == fingerprint:
                return known
            record = sound_record(tree, _cancelled)
            return None if record is None else (fingerprint, record)

        found = await self._run(f"reading package {digest}", read)
        if found is None:
            return None
        if found[0]:
            self._sound[digest.hex] = found
            while len(self._sound) > MOST_RECORDS:
                self._sound.popitem(last=False)
        return found[1]

    def _has_blob(self, blob: Descriptor) -> bool:
        try:
            with (self._blobs / blob.digest.hex).open("rb") as file:
                return has_content(file, blob.digest.hex, blob.size, _cancelled)
        except FileNotFoundError:
            return False

    def _unpack(self, manifest: Manifest, layers: tuple[Descriptor, ...], temporary: Path, replaced: Path) -> None:
        tree = self._trees / manifest.descriptor.digest.hex
        with closing(self._opened_layers(manifest, layers)) as opened:
            build_tree(opened, manifest, temporary, self._limits.archive, should_stop=_cancelled)
        # A tree that exists here is damaged, but packages may run from it. So it is removed only when the new tree replaces it.
        replace_tree(temporary, tree, replaced)

    def _opened_layers(
        self, manifest: Manifest, layers: tuple[Descriptor, ...]
    ) -> Generator[tuple[str, io.BufferedReader], None, None]:
        """Yield each layer's name for error messages, and its open blob. The blob is hashed again before it is yielded."""
        package = f"package {manifest.descriptor.digest}"
        for layer in layers:
            try:
                archive = (self._blobs / layer.digest.hex).open("rb")
            except FileNotFoundError as error:
                raise StoreError(f"{package}: not downloaded; download it first") from error
            with archive:
                if not has_content(archive, layer.digest.hex, layer.size, _cancelled):
                    raise StoreError(
                        f"blob {layer.digest}: damaged on disk; download the package again, and check the disk"
                    )
                archive.seek(0)
                yield f"{package}: layer {layer.digest}", archive

    def _point(self, link: Path, tree: Path, temporary: Path) -> None:
        if read_record(tree) is None:
            raise StoreError(
                f"package sha256:{tree.name}: not installed; install it before it is deployed as {link.name}"
            )
        _refuse_foreign(link)
        folder = tree / PACKAGE_FOLDER
        if _points_at(link, folder):
            return
        temporary.symlink_to(_target(link, folder))
        publish(temporary, link)

    def _deployed_trees(self) -> frozenset[str]:
        found: set[str] = set()
        for link in self._deployed.iterdir():
            if link.is_symlink():
                found.update(part for part in link.readlink().parts if _HEX.match(part))
        return frozenset(found)

    def _used_blobs(self) -> frozenset[str]:
        records = (read_record(self._trees / name) for name in _digests_in(self._trees))
        return frozenset(
            blob.digest.hex for record in records if record is not None for blob in blobs_of(record.manifest)
        )

    def _sweep_temporary(self) -> int:
        left = [path for path in self._tmp.iterdir() if path.name not in self._in_work]
        for path in left:
            discard(path)
        return len(left)

    async def _delete(self, path: Path) -> int:
        async with self._temporary() as trash:
            return int(await self._run(f"deleting {path.name}", partial(delete, path, trash)))

    def _pin(self, manifest: Manifest) -> None:
        """Keep `collect` from deleting a package that will be deployed soon."""
        blobs = frozenset(blob.digest.hex for blob in blobs_of(manifest))
        self._pins[manifest.descriptor.digest.hex] = (trio.current_time() + self._limits.spare_s, blobs)

    def _pinned(self) -> dict[str, tuple[float, frozenset[str]]]:
        now = trio.current_time()
        self._pins = {key: pin for key, pin in self._pins.items() if pin[0] > now}
        return self._pins

    def _link(self, name: str) -> Path:
        if len(name) > MAX_NAME or not _NAME.match(name):
            raise StoreError(
                f"{name[:MAX_NAME]!r} cannot be a deployed name: expected lower-case letters, digits, '-' and '.', at most "
                f"{MAX_NAME} characters",
                transient=False,
            )
        return self._deployed / name

    @asynccontextmanager
    async def _temporary(self) -> AsyncIterator[Path]:
        """Yield an unused path below ``tmp``. The file or folder there is deleted at the end; if the deletion takes too long,
        `collect` deletes the rest.
        """
        path = self._tmp / f"{os.getpid()}-{next(self._numbers)}"
        self._in_work.add(path.name)
        try:
            yield path
        finally:
            if _is_there(path):
                with trio.move_on_after(DISCARD_S) as scope:
                    scope.shield = True
                    await trio.to_thread.run_sync(discard, path, limiter=self._threads, abandon_on_cancel=True)
            self._in_work.discard(path.name)

    async def _run(self, doing: str, work: Callable[[], T]) -> T:
        """Run disk work in a thread. A cancelled task waits for its thread; long work checks for cancellation itself."""

        def guarded() -> T:
            with disk_errors(doing):
                return work()

        return await trio.to_thread.run_sync(guarded, limiter=self._threads)


@asynccontextmanager
async def open_store(
    root: Path, limits: StoreLimits | None = None, now: Callable[[], float] = time.time
) -> AsyncIterator[DiskStore]:
    """Open the store below the state folder ``root``, for this process alone. ``now`` is the wall clock. Raises StoreError."""
    with _opened(root):
        store = DiskStore(root, limits or StoreLimits(), now)
        await trio.to_thread.run_sync(_clear, root)
        yield store


@contextmanager
def _opened(root: Path) -> Iterator[None]:
    with disk_errors(f"opening the store in {root}"):
        for folder in ("store/blobs/sha256", "store/trees", "store/tmp", "deployed"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        lock = (root / "store" / "lock").open("wb")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(
                f"{root}: another process uses this store; stop it, or choose another --state-dir"
            ) from error
        yield


def _clear(root: Path) -> None:
    """Delete incomplete files that a killed process left."""
    with disk_errors(f"opening the store in {root}"):
        for path in (root / "store" / "tmp").iterdir():
            discard(path)


def _cancelled() -> bool:
    """Raise Cancelled if the task was cancelled; else return False.

    Long work in a thread calls this, because trio waits for a thread even if its task is cancelled.
    """
    trio.from_thread.check_cancelled()
    return False


def _create(path: Path) -> io.FileIO:
    return path.open("xb", buffering=0)


def _write(file: io.FileIO, data: bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


def _digests_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if _HEX.match(path.name))


def _target(link: Path, folder: Path) -> str:
    return os.path.relpath(folder, link.parent)


def _points_at(link: Path, folder: Path) -> bool:
    return link.is_symlink() and os.fspath(link.readlink()) == _target(link, folder)


def _refuse_foreign(link: Path) -> None:
    """Raise StoreError if the deployed name is not a link, because then the store did not create it."""
    if _is_there(link) and not link.is_symlink():
        raise StoreError(f"{link}: expected a link of this store, found another file; move it away", transient=False)
