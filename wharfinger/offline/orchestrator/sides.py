"""The builds of two versions of a tree, the *sides* of a comparison. Releases whose inputs do not differ are not rendered.

At first, a survey (:meth:`~wharfinger.offline.orchestrator.orchestrator.Orchestrator.survey`) of each side builds everything,
but renders only a few releases, such as those that may make further nodes. It finds the inputs of the other releases. Then
releases that exist on one side only, or whose inputs differ, are rendered. If a survey cannot find all inputs, both trees are
built as a whole.
"""

from dataclasses import dataclass, field

from wharfinger.offline.orchestrator.orchestrator import Config, Surveyed, Tools, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.runtime.fixpoint.model import Id


@dataclass(frozen=True, slots=True)
class Sides:
    """Both builds. ``unchanged`` are the releases that were not rendered, because their inputs are the same on both sides.

    ``unsearched`` are the unchanged releases that may make nodes. Such nodes are not compared, because the charts of these
    releases were not fetched.
    """

    before: Result
    after: Result
    unchanged: frozenset[Id] = field(default=frozenset())
    unsearched: frozenset[Id] = field(default=frozenset())


@dataclass(frozen=True, slots=True)
class TreeVersion:
    """One version of a tree, and the tools that build it."""

    config: Config
    tools: Tools


async def build_sides(before: TreeVersion, after: TreeVersion, *, everything: bool = False) -> Sides:
    """Build both sides; with ``everything``, all releases are rendered. Raises TreeError, StoreError."""
    if not everything and (narrowed := await _narrowed(before, after)) is not None:
        return narrowed
    async with (
        open_orchestrator(before.config, before.tools) as old,
        open_orchestrator(after.config, after.tools) as new,
    ):
        return Sides(await old.render(), await new.render())


async def _narrowed(before: TreeVersion, after: TreeVersion) -> Sides | None:
    """Build both sides with only the releases that differ; return None if both trees must be built as a whole."""
    async with (
        open_orchestrator(before.config, before.tools) as old,
        open_orchestrator(after.config, after.tools) as new,
    ):
        known_before, known_after = await old.survey(), await new.survey()
        if known_before is None or known_after is None:
            return None
        different = differing_releases(known_before, known_after)
        was, now = await old.finish(different), await new.finish(different)
        if was is None or now is None:
            return None
        unsearched = known_before.unsearched | known_after.unsearched
        return Sides(was, now, frozenset(known_before.inputs) - different, unsearched - different)


def differing_releases(before: Surveyed, after: Surveyed) -> frozenset[Id]:
    """Return the releases that exist on one side only, or whose inputs differ."""
    both = {*before.inputs, *after.inputs}
    return frozenset(who for who in both if before.inputs.get(who) != after.inputs.get(who))
