"""The identity of a package: its runtime name and its Helm release.

An Application's runtime name is ``<namespace>.<instance>``: the first dot separates the two, because a namespace has no dot.
Its release has the name of the instance, and is in the Application's namespace. A Module's runtime name is the Module's own
name, which has no dot; its release is in SYSTEM_NAMESPACE, unless the Module names another namespace. Helm allows 53
characters for the name of a release; longer names are refused before anything runs.
"""

import sys
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

MAX_RELEASE_NAME: Final = 53
SYSTEM_NAMESPACE: Final = "wharfinger-system"
GLOBAL: Final = "global"
"""The name of the Module whose hooks are the global hooks.

Its hooks run before and after all other packages, and its values are the ``global`` values of all packages.
"""


class IdentityError(Exception):
    """A package cannot have this name, or cannot be installed by a resource of this kind. A retry does not help, because the
    resource has to be replaced.
    """


@dataclass(frozen=True, slots=True, order=True)
class AppId:
    """The identity of an Application: its namespace and its instance name."""

    namespace: str
    instance: str
    kind: ClassVar[str] = "Application"

    @property
    def name(self) -> str:
        """The runtime name, which is also the name of the package's queue. It is interned, because many parts of the daemon
        keep it.
        """
        return sys.intern(f"{self.namespace}.{self.instance}")

    @property
    def release(self) -> str:
        """The Helm release's name, in ``namespace``. Raises IdentityError if Helm would refuse it."""
        return _release(self.instance, f"Application {self}")

    def __str__(self) -> str:
        """Return ``namespace/name``, such as ``prod/web``."""
        return f"{self.namespace}/{self.instance}"


@dataclass(frozen=True, slots=True, order=True)
class ModuleId:
    """The identity of a Module: its name, and the ``namespace`` of its release."""

    name: str
    namespace: str = SYSTEM_NAMESPACE
    kind: ClassVar[str] = "Module"

    @property
    def release(self) -> str:
        """The Helm release's name, in ``namespace``. Raises IdentityError if Helm would refuse it."""
        return _release(self.name, f"Module {self}")

    def __str__(self) -> str:
        """Return the name, such as ``ingress``."""
        return self.name


PackageId: TypeAlias = AppId | ModuleId


def is_global(identity: PackageId) -> bool:
    """Return whether the package is the Module ``global``, whose hooks are the global hooks."""
    return isinstance(identity, ModuleId) and identity.name == GLOBAL


def has_release(identity: PackageId) -> bool:
    """Return whether a package of this name can have a release; False if Helm refuses the name."""
    try:
        return bool(identity.release)
    except IdentityError:
        return False


def identity_variables(identity: PackageId) -> dict[str, str]:
    """Return the environment variables that name a hook's package (spec hook-protocol §1.5)."""
    if isinstance(identity, AppId):
        return {"APPLICATION_NAME": identity.instance, "APPLICATION_NAMESPACE": identity.namespace}
    return {"MODULE_NAME": identity.name}


def package_id(name: str) -> PackageId:
    """Return the identity of the package with this runtime name. A Module gets the default namespace.

    Raises IdentityError if ``name`` is not a runtime name.
    """
    namespace, dot, instance = name.partition(".")
    if not dot and namespace:
        return ModuleId(namespace)
    if not (namespace and instance):
        raise IdentityError(f"{name!r} is neither <namespace>.<instance> nor the name of a Module")
    return AppId(namespace, instance)


def _release(name: str, who: str) -> str:
    if len(name) > MAX_RELEASE_NAME:
        raise IdentityError(
            f"{who}: expected a name of at most {MAX_RELEASE_NAME} characters, as Helm demands of releases, found "
            f"{len(name)}; choose a shorter name"
        )
    return name
