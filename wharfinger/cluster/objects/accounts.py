"""The service accounts that releases act as.

Requests for the objects of a release (apply, delete, and the reads of single objects before them) are made as the release's
service account, if it has one, by impersonation. The daemon makes all other requests as itself: lists, watches, discovery, and
reads and writes of the release's records.

If accounts are required and the account of a release is not known, :class:`NoAccountError` is raised. The daemon's own rights are
never used instead.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ReleaseError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.kube.service_account import ServiceAccount

Accounts: TypeAlias = Callable[[Owner], ServiceAccount | None]
"""A function that returns the account of a release; None: the daemon itself. Raises NoAccountError."""

Acting: TypeAlias = Callable[[Owner], ClusterClient]
"""A function that returns the client for the objects of a release. Raises NoAccountError."""

MAX_CLIENTS: Final = 1024
"""The largest number of clients that are kept. When one more is needed, all are dropped, and made again on demand."""


class NoAccountError(ReleaseError):
    """A release has no service account, but the daemon requires a service account for each release."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(
            f"release {owner} has no service account, but the daemon was started with --require-service-account; set "
            f"spec.serviceAccountName, or label the namespace {owner.namespace} wharfinger.dev/service-account=NAME"
        )


def daemon_itself(_owner: Owner) -> None:
    """Return None, so that the daemon acts with its own rights."""


def always(client: ClusterClient) -> Acting:
    """Return a function that returns the same client for each release."""
    return lambda _owner: client


class OwnerClients:
    """The clients that work on the objects of releases, one for each service account."""

    def __init__(self, client: ClusterClient, account_of: Accounts) -> None:
        self._client = client
        self._account_of = account_of
        self._acting: dict[ServiceAccount, ClusterClient] = {}

    def __call__(self, owner: Owner) -> ClusterClient:
        """Return the client for the objects of a release. Raises NoAccountError."""
        account = self._account_of(owner)
        if account is None:
            return self._client
        if (client := self._acting.get(account)) is None:
            if len(self._acting) >= MAX_CLIENTS:
                self._acting.clear()
            client = self._acting[account] = self._client.acting_as(account)
        return client
