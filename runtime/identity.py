"""Who a package is: its runtime name and its Helm release (DESIGN §7, "Identity").

An Application's runtime name is ``<namespace>.<instance>``: a namespace has no dot, so the first dot divides. Its release is
named after the instance and lives in its namespace. Helm allows 53 characters; longer names are refused before anything runs.
"""

from dataclasses import dataclass
from typing import Final

MAX_RELEASE_NAME: Final = 53


class IdentityError(Exception):
    """The name cannot be a package's name; permanent until it is renamed."""


@dataclass(frozen=True, slots=True, order=True)
class AppId:
    """An Application by namespace and instance name."""

    namespace: str
    instance: str

    @property
    def name(self) -> str:
        """The runtime name, also that of its queue."""
        return f"{self.namespace}.{self.instance}"

    @property
    def release(self) -> str:
        """The Helm release's name, in ``namespace``. Raises IdentityError where Helm would refuse it."""
        if len(self.instance) > MAX_RELEASE_NAME:
            raise IdentityError(
                f"Application {self.namespace}/{self.instance}: the name has {len(self.instance)} characters, and a Helm "
                f"release name at most {MAX_RELEASE_NAME}; choose a shorter one"
            )
        return self.instance

    def __str__(self) -> str:
        """``prod/web``, as kubectl users write it."""
        return f"{self.namespace}/{self.instance}"


def app_id(name: str) -> AppId:
    """The Application behind a runtime name. Raises IdentityError where it is none."""
    namespace, dot, instance = name.partition(".")
    if not (namespace and dot and instance):
        raise IdentityError(f"{name!r} is not of the form <namespace>.<instance>")
    return AppId(namespace, instance)
