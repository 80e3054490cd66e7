"""Whose a Helm release is: one package's, from the first look at it until nothing of the package is left.

A Module and an Application may ask for the same release (DESIGN §7, "Identity"); the first to be looked at has it, the other is
refused by name and told when the release is free. What was installed by an earlier process says so itself, by a label.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from wharfinger.runtime.resources.identity import PackageId


@dataclass(slots=True)
class ReleaseClaims:
    """Claims by (namespace, release). ``on_free`` is told each package that was refused a release that is free now."""

    on_free: Callable[[str], None]
    _owners: dict[tuple[str, str], PackageId] = field(default_factory=dict)
    _held: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The one release that each package has."""
    _refused: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def claim(self, identity: PackageId) -> PackageId | None:
        """Have the release: None if it is this package's now, else whose it is. Raises IdentityError where there can be none."""
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
        """Whose a release is; None where nobody has looked at it."""
        return self._owners.get((namespace, release))

    def give_up(self, name: str) -> None:
        """The package is no more, or wants no release."""
        self._give_up(name)
        for refused in self._refused.values():
            refused.discard(name)

    def _give_up(self, name: str) -> None:
        if (key := self._held.pop(name, None)) is not None:
            del self._owners[key]
            for refused in sorted(self._refused.pop(key, set())):
                self.on_free(refused)
