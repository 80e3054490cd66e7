"""The check that the release of a package belongs to this package only, and is not moved to another namespace."""

from collections.abc import Callable
from dataclasses import dataclass

from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.resources.identity import (
    AppId,
    ModuleId,
    PackageId,
)
from wharfinger.runtime.resources.release_claims import moved_text, taken_text
from wharfinger.runtime.resources.resources import (
    SpecError,
    resource_key,
)


@dataclass(frozen=True, slots=True)
class ReleaseChecks:
    """The checks of the releases of all packages. ``find`` returns the last observed state of an Application or a Module."""

    runtime: Runtime
    find: Callable[[ObjectKey], JsonObject | None]

    def check(self, identity: PackageId, written: JsonObject) -> None:
        """Claim the release of a package. Raises SpecError if the release belongs to another package, or if the package is
        installed in another namespace than its resource names now. Also raises IdentityError.
        """
        placed = find_str(written, "release", "namespace") or identity.namespace
        known = self.runtime.instances.get(identity.name)
        if known is not None:
            placed = known.status.namespace or placed
            if not known.status.namespace and known.id != identity:
                self.runtime.rename(known, identity)
        if placed != identity.namespace:
            raise SpecError(moved_text(placed))
        self.claim_for_others(identity, written)
        owner = self.runtime.claims.claim(identity)
        if owner is not None:
            raise SpecError(taken_text(identity, owner))

    def claim_for_others(self, identity: PackageId, written: JsonObject) -> None:
        """Claim a release for the package that owns it, if this is a package of the other kind (a Module instead of an
        Application, or vice versa) that an earlier process installed.
        """
        if not find_str(written, "release", "namespace") and (other := self._installed_there(identity)):
            self.runtime.claims.claim(other)

    def _installed_there(self, identity: PackageId) -> PackageId | None:
        """Return the package of the other kind (a Module for an Application, and vice versa) that had the release before this
        process started; None if there is none.
        """
        other: PackageId = (
            ModuleId(identity.instance, identity.namespace)
            if isinstance(identity, AppId)
            else AppId(identity.namespace, identity.name)
        )
        key = resource_key(other)
        obj = self.find(key)
        return other if find_str(obj, "status", "release", "namespace") == identity.namespace else None
