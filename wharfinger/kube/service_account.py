"""Service accounts: their names as users of a Kubernetes API."""

from dataclasses import dataclass
from typing import Final

_PREFIX: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A service account of a namespace."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """Return the name of its user: ``system:serviceaccount:NAMESPACE:NAME``."""
        return f"{_PREFIX}{self.namespace}:{self.name}"

    def __str__(self) -> str:
        """Return ``NAMESPACE/NAME``, for messages."""
        return f"{self.namespace}/{self.name}"


def service_account_of(user: str) -> ServiceAccount | None:
    """Return the service account with this user name; None if the name belongs to another kind of user."""
    namespace, colon, name = user.removeprefix(_PREFIX).partition(":")
    if not user.startswith(_PREFIX) or not colon or not namespace or not name or ":" in name:
        return None
    return ServiceAccount(namespace, name)
