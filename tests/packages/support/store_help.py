"""Helpers for tests of the store: they install one package, and list the resulting files."""

from pathlib import Path

from tests.packages.support.memory_registry import MemoryRegistry
from wharfinger.packages.registry.registry import Manifest
from wharfinger.packages.store.disk_store import DiskStore

REPOSITORY = "charts/web"


async def bring(store: DiskStore, registry: MemoryRegistry, manifest: Manifest, name: str = "prod.web") -> Path:
    """Download, install and deploy a package."""
    await store.download(registry, REPOSITORY, manifest)
    await store.install(manifest)
    return await store.deploy(name, manifest)


def listing(root: Path) -> dict[str, list[str]]:
    """Return the names in each folder of the store."""
    folders = {
        "blobs": root / "store/blobs/sha256",
        "trees": root / "store/trees",
        "tmp": root / "store/tmp",
        "deployed": root / "deployed",
    }
    return {name: sorted(path.name for path in folder.iterdir()) for name, folder in folders.items()}


def edit(path: Path, text: str = "edited by hand") -> None:
    """Write to a file of a tree. Trees are read-only for all users except root."""
    for each in (path.parent, path):
        if each.exists():
            each.chmod(0o700)
    path.write_text(text)
