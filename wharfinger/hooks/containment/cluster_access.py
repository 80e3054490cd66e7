"""The way to the daemon's own cluster for a hook: a kubeconfig for each run, and who may have credentials in it.

Whatever the daemon was given (several files, a context, a plugin, a pod's service account), a hook gets one complete file in the
folder of its run. Only the run's user can read it, and it is removed with the folder. So ``kubectl`` talks to the daemon's
cluster, also as another user and in a sandbox. The credentials in it are the daemon's own, as they are when the run begins.

Where the policy gives a package no credentials, the file still names the cluster: the API server then refuses a request, and no
other cluster answers it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from wharfinger.cluster.api.connection import Connection, ConnectionConfigError
from wharfinger.cluster.api.kubeconfig_document import current_kubeconfig
from wharfinger.formats.json.value import encode_json
from wharfinger.hooks.errors import HookError

IN_CLUSTER: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS")
"""With these, and the service account's files, the libraries of clients find the cluster of the pod they are in."""


class CredentialsPolicy(StrEnum):
    """Who gets the daemon's credentials: hooks of packages that are held in no namespace, those of all packages, or none."""

    MODULES = "modules"
    ALL = "all"
    NONE = "none"

    def gives(self, namespace: str | None) -> bool:
        """Return whether hooks get them that are held in this namespace, or in none."""
        return self is CredentialsPolicy.ALL or (self is CredentialsPolicy.MODULES and namespace is None)


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The cluster of this connection; ``environ`` is the daemon's, for where it is a pod."""

    connection: Connection
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def host(self) -> str:
        """The host that is reached without a proxy; empty if the connection has one."""
        return "" if self.connection.proxy else urlsplit(self.connection.server).hostname or ""

    def variables(self, *, credentials: bool) -> dict[str, str]:
        """The variables by which a pod's programs find their cluster, if it is the daemon's."""
        if not (credentials and self.connection.in_cluster):
            return {}
        return {name: self.environ[name] for name in IN_CLUSTER if name in self.environ}

    async def kubeconfig(self, hook: str, *, credentials: bool) -> bytes:
        """A kubeconfig that is good now. Raises HookError where the credentials cannot be had."""
        try:
            return encode_json(await current_kubeconfig(self.connection, credentials=credentials))
        except ConnectionConfigError as error:
            why = f"the kubeconfig for it cannot be made: {error}"
            raise HookError(hook, why, transient=True) from error
