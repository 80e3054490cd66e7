"""A program that kills a process at each call that changes the disk, one call in each round, and checks what remains.

The arguments are a folder, and ``chart`` or ``image``. Every round forks twice. The first child adds version 2 (of that kind)
beside version 1, and is killed with SIGKILL at its nth call that changes the disk. The second child opens the store as the next
daemon would, checks every name in it, and does the work again. The rounds end when a first child completes its work. The program
prints the number of killed children.
"""

import io
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import trio

from tests.packages.support.memory_registry import MemoryRegistry, chart_files, packed, put, put_image
from wharfinger.packages.digest import digest_of
from wharfinger.packages.store.disk_store import DiskStore, open_store
from wharfinger.packages.store.tree import is_sound
from wharfinger.process.remove_tree import remove_tree

CALLS = ("rename", "fsync", "symlink", "mkdir", "unlink", "rmdir", "open", "link", "replace", "chmod", "utime")
MOST = 2_000

P = ParamSpec("P")
T = TypeVar("T")


async def bring(store: DiskStore, version: str, kind: str = "chart") -> None:
    """Download, install and deploy a package."""
    registry = MemoryRegistry()
    if kind == "chart":
        manifest = await put(registry, version)
    else:
        below = packed({"Chart.yaml": b"", "old": b"", "hooks/run": b"#!/bin/sh\n"})
        above = packed({".wh.old": b"", **chart_files(version=version)})
        manifest = await put_image(registry, below, above, tag=version)
    await store.download(registry, "charts/web", manifest)
    await store.install(manifest)
    await store.deploy("app", manifest)


async def begin(root: Path) -> None:
    """Prepare the store: deploy version 1 of the package under two names."""
    async with open_store(root) as store:
        await bring(store, "1.0.0")
        registry = MemoryRegistry()
        await store.deploy("other", await put(registry, "1.0.0"))


async def upgrade(root: Path) -> None:
    """Do the work during which the process is killed: replace version 1 by version 2, and collect what is no longer used."""
    async with open_store(root) as store:
        await bring(store, "2.0.0", kind=sys.argv[2])
        await store.undeploy("other")
        await store.collect()


async def check(root: Path) -> None:
    """Check that the remains of a crash are sound, and that the work can then be completed."""
    sound(root)
    await upgrade(root)
    sound(root)
    assert version(root) == "2.0.0"
    assert [path.name for path in (root / "deployed").iterdir()] == ["app"]
    assert len(list((root / "store" / "trees").iterdir())) == 1
    assert len(list((root / "store" / "blobs" / "sha256").iterdir())) == {"chart": 2, "image": 3}[sys.argv[2]]
    assert list((root / "store" / "tmp").iterdir()) == []


def sound(root: Path) -> None:
    """Check that every blob and every tree in the store is complete, and that version 1 or version 2 is deployed."""
    for blob in (root / "store" / "blobs" / "sha256").iterdir():
        assert digest_of(blob.read_bytes()).hex == blob.name
    for tree in (root / "store" / "trees").iterdir():
        assert is_sound(tree)
    assert version(root) in {"1.0.0", "2.0.0"}


def version(root: Path) -> str:
    """Return the version of ``deployed/app``."""
    return (root / "deployed" / "app" / "Chart.yaml").read_text().rpartition("version: ")[2].strip()


def die_at(step: int) -> None:
    """From now on, count the calls that change the disk, and kill this process with SIGKILL just before call number
    ``step``.
    """
    left = step

    def counted(call: Callable[P, T]) -> Callable[P, T]:
        def instead(*args: P.args, **kwargs: P.kwargs) -> T:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return instead

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))
    setattr(io, "open", counted(io.open))  # noqa: B010 - what pathlib opens with


def in_child(work: Callable[[Path], Awaitable[None]], root: Path, step: int = 0) -> int:
    """Run ``work`` in a fork. Return its exit code, or the negative number of the signal that killed it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if step:
                die_at(step)
            trio.run(work, root)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path) -> int:
    """Run all rounds."""
    start = folder / "start"
    if in_child(begin, start):
        return 1
    for step in range(1, MOST):
        root = folder / f"step-{step}"
        shutil.copytree(start, root, symlinks=True)
        ended = in_child(upgrade, root, step)
        if ended not in {0, -signal.SIGKILL} or in_child(check, root):
            sys.stderr.write(f"failed after a kill at step {step}\n")
            return 1
        remove_tree(root)
        if ended == 0:
            sys.stdout.write(f"{step - 1}\n")
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
