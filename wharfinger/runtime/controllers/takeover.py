"""The takeover of releases that an earlier process applied. A release is taken over once its package was reconciled,
successfully or not.

A release can exist in every state of its package: the package may be loaded from disk, fetched, blocked, suspended, being
removed, or gone. Until all releases are taken over, the release engine (:mod:`wharfinger.cluster.releases.engine`) prunes no
objects, and does not begin its regular comparison of all objects. So the takeover of a release does not depend on the tasks of
its package; otherwise a package without progress would hold up all others. If this process does not know the wanted state of a
release, drift is reported but not corrected.

A record that cannot be read is skipped with a warning; a transient failure is retried with growing pauses.
"""

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.errors import FormatError
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.tasks.applying import restore

if TYPE_CHECKING:
    from wharfinger.runtime.core.runtime import Runtime

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
RETRY_MAX_S: Final = 30.0


class Takeover:
    """The takeover of releases for one runtime; `run` carries it out. ``expected`` has the releases to take over, by the names
    of their packages.
    """

    def __init__(self, runtime: "Runtime", expected: Mapping[str, Owner]) -> None:
        """Pass the expected releases to the release engine, which prunes nothing until all of them are taken over."""
        self._runtime = runtime
        self._expected = dict(expected)
        # Each expected package is sent to the channel at most once.
        self._tell, self._told = trio.open_memory_channel[tuple[str, Owner]](math.inf)
        runtime.tools.releases.expect(self._expected.values())

    def arrives(self, name: str, owner: Owner) -> None:
        """Expect the release of a package that another daemon managed until now."""
        self._expected[name] = owner
        self._runtime.tools.releases.expect((owner,))

    def reconciled(self, name: str, *, gone: bool = False) -> None:
        """Record that a package was reconciled; ``gone`` means that the package's resource does not exist any more."""
        if name in self._expected and (gone or name in self._runtime.instances):
            self._tell.send_nowait((name, self._expected.pop(name)))

    async def run(self) -> None:
        """Take over each expected release once its package was reconciled, until cancelled. Each takeover has its own task,
        because it may have to wait for an operation on the release.
        """
        async with trio.open_nursery() as nursery:
            async for name, owner in self._told:
                nursery.start_soon(self._take_over, name, owner, name=f"takeover of {owner}")

    async def _take_over(self, name: str, owner: Owner) -> None:
        pause_s = RETRY_S
        while True:
            instance = self._runtime.instances.get(name)
            try:
                await self._try(instance, owner)
            except (ClusterError, FormatError) as error:
                said = instance.masked(str(error)) if instance is not None else str(error)
                if getattr(error, "transient", False) is not True:
                    log.warning("%s: release %s is not watched until it is applied again: %s", name, owner, said)
                    await self._runtime.tools.releases.forget(owner)
                    return
                log.info("%s: release %s: %s; retrying in %.0f s", name, owner, said, pause_s)
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_MAX_S)
            else:
                return

    async def _try(self, instance: Instance | None, owner: Owner) -> None:
        releases = self._runtime.tools.releases
        if instance is not None and Owner(instance.id.release, instance.id.namespace) == owner:
            if instance.desired.source is None:
                releases.suspend(owner)
            self._runtime.packages.emit(instance, await restore(instance, self._runtime.tools))
        elif self._runtime.claims.owner_of(owner.namespace, owner.name) is None:
            await releases.forget(owner)
