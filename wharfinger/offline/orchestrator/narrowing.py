"""The build of a tree from which filters choose objects. It renders only the releases that the filters choose, those that a
chosen object needs, and those that may make further nodes.

The tree is surveyed first (:meth:`~wharfinger.offline.orchestrator.orchestrator.Orchestrator.survey`): all Kustomizations are
built, but most releases only record their inputs. If the survey is not sufficient, the whole tree is built.

The whole tree is also built if a filter may choose a kind that has no controller, such as Deployment, because such an object
may come from any release.
"""

from collections.abc import Sequence
from dataclasses import replace

from wharfinger.offline.orchestrator.filter import Candidate, Filter, unmatched
from wharfinger.offline.orchestrator.orchestrator import Config, Orchestrator, Surveyed, Tools, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.selection import labels_of, needs_of, reachable_from
from wharfinger.offline.store.kinds import FOLDER
from wharfinger.offline.store.store import Stored
from wharfinger.runtime.fixpoint.model import Id


async def build_narrowed(config: Config, tools: Tools) -> Result:
    """Build at least the objects that the filters choose, and their dependencies; the result is unfiltered. Raises TreeError."""
    whole = replace(config, filters=())
    if config.filters and all(each.names_nodes for each in config.filters):
        async with open_orchestrator(whole, tools) as orchestrator:
            surveyed = await orchestrator.survey(strict=True)
            wanted = None if surveyed is None else wanted_releases(orchestrator, surveyed, config.filters)
            if wanted is not None and (result := await orchestrator.finish(wanted)) is not None:
                return result
    async with open_orchestrator(whole, tools) as orchestrator:
        return await orchestrator.render()


def wanted_releases(orchestrator: Orchestrator, surveyed: Surveyed, filters: Sequence[Filter]) -> frozenset[Id] | None:
    """Return the surveyed releases that must be rendered: those that the filters choose, and those that chosen objects need.

    Return None if a filter matches no object of the survey.
    """
    objects = orchestrator.store.list()
    candidates = [Candidate(each.id, labels_of(each.object), _file_of(each, orchestrator)) for each in objects]
    if unmatched(filters, candidates):
        return None
    matching = {each.id for each in candidates if any(one.matches(each) for one in filters)}
    makers = {each.id: (each.producer,) for each in objects if each.producer is not None}
    made: dict[Id, list[Id]] = {}
    for who, (maker,) in makers.items():
        made.setdefault(maker, []).append(who)
    chosen = reachable_from(matching, made)
    return frozenset(surveyed.inputs) & (chosen | needs_of(chosen, surveyed.reads, makers))


def _file_of(stored: Stored, orchestrator: Orchestrator) -> str:
    """Return the file that declares an object or, failing that, its nearest producer with a known file; "" if there is none."""
    tree, store = orchestrator.tree, orchestrator.store
    found: Stored | None = stored
    seen: set[Id] = set()
    while found is not None and found.id not in seen:
        if found.id.kind == FOLDER:
            return found.id.name
        if found.id in tree.declared:
            return tree.declared[found.id].place.file
        files = {each.place.file for each in tree.named.get((found.id.kind, found.id.name), ())}
        if len(files) == 1:
            return files.pop()
        seen.add(found.id)
        found = store.get(found.producer) if found.producer is not None else None
    return ""
