"""The rule that decides which releases may have objects only in their own namespace."""

from collections.abc import Callable, Container

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.release_claims import ReleaseClaims


class Confinement:
    """The test whether a release may have objects only in its own namespace. ``claims`` names the package of each release."""

    def __init__(self, claims: ReleaseClaims, known: Container[str]) -> None:
        self._claims = claims
        self._known = known
        self.reaches_cluster: Callable[[str], bool] = lambda _namespace: False
        """A function that returns whether Applications of a namespace may have objects in the whole cluster. This default
        always returns False. The controller, which watches namespaces, replaces it.
        """

    def __call__(self, owner: Owner) -> bool:
        """Return whether a release may have objects only in its own namespace. This is so for the release of an Application,
        unless its namespace allows more.
        """
        holder = self._claims.owner_of(owner.namespace, owner.name)
        is_application = isinstance(holder, AppId)
        if holder is None:
            is_application = AppId(owner.namespace, owner.name).name in self._known
        return is_application and not self.reaches_cluster(owner.namespace)
