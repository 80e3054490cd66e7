"""The advice about versions: with which versions the requirements of a package would be met, or its update would be possible.
The advice is added to the explanation of a package (`wharfinger why`).

The search reads the indexes of the packages in the conflict. An index has the versions that the last scan of the repository
found. Scans leave out packages that are not followed, so the newest versions of such a package are read when the search needs
them. A search has a time limit, and its result is kept for a while.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.repositories.repository_controller import Repositories
from wharfinger.runtime.repositories.version_nodes import nodes_of, search_versions
from wharfinger.runtime.resources.identity import AppId, IdentityError, package_id
from wharfinger.runtime.resources.resources import PackageSpec, SpecError, read_application, read_module, resource_key
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.state import Graph
from wharfinger.runtime.scheduler_details import ExplanationSnapshot
from wharfinger.runtime.versions.version_chooser import Why

MAX_WAIT_S: Final = 5.0
"""The time limit, in seconds, for a search for versions. After this time, the explanation is returned without versions."""
KEPT_S: Final = 30.0
"""The time for which advice is reused while the scheduler's state is the same. A search may take a second of processor time,
and clients that watch an explanation request it again and again.
"""
MAX_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice for a package: the state of the scheduler for which it was made, the time until which it is valid, and its
    text ("" if there is no advice).
    """

    graph: Graph
    until: float
    text: str


@dataclass(frozen=True, slots=True)
class VersionAdvice:
    """The advice about versions that could help the packages of a runtime. ``find`` returns the resource of a package as it was
    last seen; ``kept`` has the last advice for each package and version.
    """

    runtime: Runtime
    repositories: Repositories | None
    find: Callable[[ObjectKey], JsonObject | None]
    kept: dict[tuple[str, str], Advice] = field(default_factory=dict)

    async def add_to(self, explanation: ExplanationSnapshot) -> ExplanationSnapshot:
        """Return the explanation together with advice: the versions with which the package's requirements would be met or, if
        the package is ready, with which its update would be possible. Without advice, the explanation is returned unchanged.
        """
        name = explanation.name
        with trio.move_on_after(MAX_WAIT_S):
            if explanation.ready:
                text = await self._of_update(name)
                return replace(explanation, also=(*explanation.also, f"{name}: {text}")) if text else explanation
            if text := await self._searched(name):
                return replace(explanation, remedy="; ".join(filter(None, (explanation.remedy, text))))
        return explanation

    async def _searched(self, name: str, wanted: Node | None = None) -> str:
        """Return the text of a search's result; "" if the search found nothing. The result is kept for a while. If the time
        limit of the search cancels this call, "" is kept.
        """
        graph, key = self.runtime.scheduler.graph, (name, "" if wanted is None else wanted.version)
        known = self.kept.pop(key, None)
        if known is None or known.graph is not graph or trio.current_time() >= known.until:
            known = Advice(graph, trio.current_time() + KEPT_S, "")
            try:
                result = await search_versions(graph, name, self._others, wanted)
                known = replace(known, text=result.text if result is not None else "")
            finally:
                self._keep(key, known)
        else:
            self._keep(key, known)
        return known.text

    def _keep(self, key: tuple[str, str], advice: Advice) -> None:
        self.kept[key] = advice
        while len(self.kept) > MAX_KEPT:
            del self.kept[next(iter(self.kept))]

    async def _of_update(self, name: str) -> str:
        """Return the versions of other packages with which a ready package could be updated to its pending version.

        Return "" if no update is pending, if the pending update is possible with the present versions of the other packages, or
        if no such versions are found.
        """
        instance = self.runtime.instances.get(name)
        note = instance.status.update if instance is not None else None
        if note is None or note.reason != Why.NOT_POSSIBLE or not note.pending:
            return ""
        wanted = next((each for each in await self._others(name) if each.version == note.pending), None)
        if wanted is None:
            return ""
        return await self._searched(name, wanted)

    async def _others(self, name: str) -> Sequence[Node]:
        node, spec = self.runtime.scheduler.node(name), self._spec(name)
        if node is None or spec is None or self.repositories is None:
            return ()
        index = await self.repositories.look_up(spec.repository, spec.package)
        return () if index is None else nodes_of(node, spec, index)

    def _spec(self, name: str) -> PackageSpec | None:
        try:
            identity = package_id(name)
            obj = self.find(resource_key(identity))
            if obj is None:
                return None
            return read_application(obj) if isinstance(identity, AppId) else read_module(obj)
        except (IdentityError, SpecError, FormatError):
            return None
