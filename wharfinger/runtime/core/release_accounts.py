"""The service accounts that releases act as."""

from collections.abc import Mapping

from wharfinger.cluster.objects.accounts import NoAccountError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.release_claims import ReleaseClaims


class ReleaseAccounts:
    """The lookup of a release's service account, which is the account of the release's package. If ``required`` is true, a
    release without an account must not make changes.
    """

    def __init__(self, claims: ReleaseClaims, instances: Mapping[str, Instance], *, required: bool) -> None:
        self._claims = claims
        self._instances = instances
        self._required = required

    def __call__(self, owner: Owner) -> ServiceAccount | None:
        """Return the service account whose rights the daemon uses for a release; None if the daemon uses its own rights. Raises
        NoAccountError.
        """
        identity = self._claims.owner_of(owner.namespace, owner.name)
        instance = self._instances.get(identity.name) if identity is not None else None
        account = instance.account if instance is not None else None
        if account is None and self._required:
            raise NoAccountError(owner)
        return account
