"""Access of hooks to the daemon's own cluster: a kubeconfig for each run, and the policy for its credentials.

The daemon's own access may come from several files, a context, a plugin or a pod's service account. In each of these cases, a
hook gets one complete kubeconfig in the folder of its run. Only the run's user can read the file, and it is removed with the
folder. So ``kubectl`` talks to the daemon's cluster, even if the hook runs as another user or in a sandbox.

The file contains the credentials that the daemon has at the start of the run. If a package has a service account, the
kubeconfig of its hooks impersonates that account. The impersonation does not protect against a hostile hook, because the
credentials are still the daemon's.

If the policy denies the credentials to a package, its kubeconfig still names the cluster. Then the cluster's API server refuses
the requests of the hook, and no request reaches another cluster by accident.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from wharfinger.cluster.api.connection import Connection, ConnectionConfigError
from wharfinger.cluster.api.kubeconfig_document import current_kubeconfig
from wharfinger.formats.json.value import encode_json
from wharfinger.hooks.errors import HookError
from wharfinger.kube.service_account import ServiceAccount

IN_CLUSTER: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS")
"""The variables in which client libraries in a pod find the address of the cluster. The credentials are in files."""


class CredentialsPolicy(StrEnum):
    """The policy that determines which hooks get the daemon's credentials: hooks of Modules (which are not limited to a
    namespace), hooks of all packages, or no hooks.
    """

    MODULES = "modules"
    ALL = "all"
    NONE = "none"

    def gives(self, namespace: str | None) -> bool:
        """Return whether hooks that are limited to ``namespace`` get the credentials. None means hooks that are not limited."""
        return self is CredentialsPolicy.ALL or (self is CredentialsPolicy.MODULES and namespace is None)


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Access of hooks to the cluster of ``connection``. ``environ`` is the daemon's environment, which is needed if the daemon
    runs in a pod.
    """

    connection: Connection
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def host(self) -> str:
        """The host of the API server, if the daemon reaches it without a proxy; empty if the connection has a proxy."""
        return "" if self.connection.proxy else urlsplit(self.connection.server).hostname or ""

    def variables(self, *, credentials: bool) -> dict[str, str]:
        """Return the variables by which programs in a pod find their cluster. There are none without ``credentials``, or if the
        daemon does not use its pod's cluster.
        """
        if not (credentials and self.connection.in_cluster):
            return {}
        return {name: self.environ[name] for name in IN_CLUSTER if name in self.environ}

    async def kubeconfig(self, hook: str, *, credentials: bool, account: ServiceAccount | None = None) -> bytes:
        """Return a kubeconfig that is valid now; with ``account``, its user impersonates that service account.

        Raises HookError if the credentials are not available.
        """
        connection = self.connection if account is None else _impersonating(self.connection, account)
        try:
            return encode_json(await current_kubeconfig(connection, credentials=credentials))
        except ConnectionConfigError as error:
            why = f"its kubeconfig cannot be created: {error}"
            raise HookError(hook, why, transient=True) from error


def _impersonating(connection: Connection, account: ServiceAccount) -> Connection:
    kept = tuple(header for header in connection.headers if not header[0].lower().startswith("impersonate-"))
    return replace(connection, headers=(*kept, ("Impersonate-User", account.user)))
