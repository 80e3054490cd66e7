"""The owners of Helm releases: a release belongs to one package, from the first check of the package until nothing of the package
is left.

A Module and an Application may request the same release. The package that is checked first gets the
release. The other package is refused, with a message that names the owner, and is notified when the release is free. A
release that an earlier process installed names its owner in a label.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from wharfinger.runtime.resources.identity import PackageId


def taken_text(identity: PackageId, owner: PackageId) -> str:
    """Return the message for a package whose release belongs to another package."""
    return (
        f"{owner.kind} {owner} already has the release {identity.release} in namespace {identity.namespace}; "
        "choose another name"
    )


def moved_text(namespace: str) -> str:
    """Return the message for a Module whose release is not in the namespace that its resource requests."""
    return f"spec.namespace: the release is in {namespace} and cannot be moved; delete the Module and create it again"


@dataclass(slots=True)
class ReleaseClaims:
    """The claims of packages on releases. When a release becomes free, ``on_free`` is called with each package that was refused
    this release.
    """

    on_free: Callable[[str], None]
    _owners: dict[tuple[str, str], PackageId] = field(default_factory=dict)
    _held: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The release that each package has claimed."""
    _refused: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def claim(self, identity: PackageId) -> PackageId | None:
        """Claim the release for a package. Return None if it belongs to the package now, otherwise its owner.

        Raises IdentityError if Helm allows no release of this name.
        """
        key = (identity.namespace, identity.release)
        owner = self._owners.setdefault(key, identity)
        if owner.name == identity.name:
            if self._held.get(identity.name) != key:
                self._give_up(identity.name)
                self._held[identity.name] = key
            return None
        self._refused.setdefault(key, set()).add(identity.name)
        return owner

    def owner_of(self, namespace: str, release: str) -> PackageId | None:
        """Return the owner of a release; None if no package has claimed it."""
        return self._owners.get((namespace, release))

    def give_up(self, name: str) -> None:
        """End the claim of a package that is gone, or that does not need a release any more."""
        self._give_up(name)
        for refused in self._refused.values():
            refused.discard(name)

    def _give_up(self, name: str) -> None:
        if (key := self._held.pop(name, None)) is not None:
            del self._owners[key]
            for refused in sorted(self._refused.pop(key, set())):
                self.on_free(refused)
