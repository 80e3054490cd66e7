"""The interface of packages on disk. Implementation: :mod:`wharfinger.packages.store.disk_store`.

The store is content-addressed: the name of a tree is the digest of the manifest that it was unpacked from, and a tree is complete
or absent (temporary folder, then one rename). `deploy` points a runtime name at a tree by a link that is replaced atomically, so
that after a crash at any moment either the old tree or the new tree is deployed.
"""

from pathlib import Path
from typing import Protocol

from wharfinger.packages.digest import Digest
from wharfinger.packages.registry.registry import Manifest, Registry


class Store(Protocol):
    """Packages on disk. Raises PackageError."""

    async def download(self, registry: Registry, repository: str, manifest: Manifest) -> None:
        """Download every missing blob of the manifest; each blob is verified while it streams."""
        ...

    async def install(self, manifest: Manifest) -> Path:
        """Unpack the downloaded package into its tree, unless the tree exists, and return the folder with its files."""
        ...

    async def installed(self, digest: Digest) -> Manifest | None:
        """Return the manifest of a digest if its tree exists undamaged, so that a restart needs no registry."""
        ...

    async def deploy(self, name: str, manifest: Manifest) -> Path:
        """Point ``deployed/<name>`` at the manifest's tree, atomically; return the link."""
        ...

    async def deployed(self, name: str, manifest: Manifest) -> Path | None:
        """Return the folder with the manifest's files if its tree exists undamaged and ``deployed/<name>`` points at it."""
        ...

    async def undeploy(self, name: str) -> None:
        """Remove ``deployed/<name>``, if it exists. Trees are kept until `collect`."""
        ...

    async def collect(self) -> int:
        """Delete left-over temporary files, and trees and blobs that no deployed name uses; return how many were deleted.

        Recent downloads are kept, because they may be deployed soon.
        """
        ...
