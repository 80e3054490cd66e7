"""The interface of the store of packages on disk. Implementation: :mod:`wharfinger.packages.store.disk_store`.

A *tree* is a folder with one unpacked package. The store is content-addressed: the name of a tree is the digest of the manifest
that the package was unpacked from. A tree is complete or absent, because it is made in a temporary folder, which is then renamed.
`deploy` makes ``deployed/<name>`` a link to a tree. The link is replaced atomically, so that after a crash at any moment either
the old tree or the new tree is deployed.
"""

from pathlib import Path
from typing import Protocol

from wharfinger.packages.digest import Digest
from wharfinger.packages.registry.registry import Manifest, Registry


class Store(Protocol):
    """A store of packages on disk. Its methods raise PackageError."""

    async def download(self, registry: Registry, repository: str, manifest: Manifest) -> None:
        """Download every missing blob of the manifest; each blob is verified during its download."""
        ...

    async def install(self, manifest: Manifest) -> Path:
        """Unpack the downloaded package into its tree, unless the tree exists, and return the folder with its files."""
        ...

    async def installed(self, digest: Digest) -> Manifest | None:
        """Return the manifest with this digest if its tree exists undamaged, else None. So a restart needs no registry."""
        ...

    async def deploy(self, name: str, manifest: Manifest) -> Path:
        """Point ``deployed/<name>`` at the manifest's tree, atomically; return the link."""
        ...

    async def deployed(self, name: str, manifest: Manifest) -> Path | None:
        """Return the folder with the manifest's files if its tree exists undamaged and ``deployed/<name>`` points at it, else
        None.
        """
        ...

    async def undeploy(self, name: str) -> None:
        """Remove ``deployed/<name>``, if it exists. Trees are kept until `collect`."""
        ...

    async def collect(self) -> int:
        """Delete left-over temporary files, and trees and blobs that no deployed name uses; return how many were deleted.

        Recent downloads are kept, because they may be deployed soon.
        """
        ...
