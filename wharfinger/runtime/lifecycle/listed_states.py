"""The recorded states of all packages, which are read with one list request when the daemon starts, instead of a GET for each
package.

A state from the list is used only once, by the first task that needs it, and only soon after the list, because a person may
change or delete the Secret later. Only states of packages that belonged to this daemon before the list request are kept: other
daemons change the states of their packages, and may hand packages over to this daemon at any time. The state of a package that
is not in the list is read separately, so the list only saves requests.
"""

import logging
from collections.abc import Container
from functools import partial
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.watch.listed_objects import visit_all
from wharfinger.formats.json.value import JsonObject, ShapeError, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.lifecycle.package_state import PACKAGE_LABEL, STATE_TYPE, StateRecord, state_record
from wharfinger.runtime.resources.identity import PackageId
from wharfinger.runtime.resources.resources import SECRET

FRESH_S: Final = 60.0
"""The time, in seconds, for which the states from a list request may be used."""
MAX_STATES: Final = 5_000
"""The limit on the number of states that are kept."""

log = logging.getLogger(__name__)


class ListedStates:
    """The Secrets of one list request; each is kept until it is used."""

    def __init__(self) -> None:
        self._secrets: dict[ObjectKey, JsonObject] = {}
        self._until = 0.0

    async def read(self, client: ClusterClient, packages: Container[str]) -> None:
        """Read the states of all packages with one list request, and keep those of ``packages``, the names of this daemon's
        packages.

        A failure is logged; then each state is read separately.
        """
        self._secrets.clear()
        keep = partial(self._keep, packages)
        try:
            await visit_all(client, SECRET, PACKAGE_LABEL, keep, field_selector=f"type={STATE_TYPE}")
        except (ClusterError, ShapeError) as error:
            log.warning("cannot list the states of packages, so each state is read separately: %s", error)
            self._secrets.clear()
        self._until = trio.current_time() + FRESH_S

    async def record(self, client: ClusterClient, identity: PackageId) -> StateRecord:
        """Return the recorded state of a package, from the list, or from the cluster if the list does not have it.

        Every reader must call this method, which discards the state from the list. Otherwise a package that is removed and
        created again under the same name would begin with the old state. Raises ClusterError and PackageStateError.
        """
        record = state_record(client, identity)
        if (listed := self.take(record.key)) is not None:
            record.restore(listed)
        else:
            await record.read()
        return record

    def take(self, key: ObjectKey) -> JsonObject | None:
        """Return the Secret of a package from the list, and discard it there; None if it has to be read from the cluster."""
        if trio.current_time() >= self._until:
            self._secrets.clear()
        return self._secrets.pop(key, None)

    def forget(self, package: str) -> None:
        """Discard the state of a package that another daemon has managed since the list request."""
        for key in [key for key, secret in self._secrets.items() if _package(secret) == package]:
            del self._secrets[key]

    def _keep(self, packages: Container[str], key: ObjectKey, secret: JsonObject) -> None:
        if len(self._secrets) < MAX_STATES and _package(secret) in packages:
            self._secrets[key] = secret


def _package(secret: JsonObject) -> str:
    return find_str(secret, "metadata", "labels", PACKAGE_LABEL)
