"""What a package's own enabled script has said, and to what: so that it is not asked again for what it has seen. Pure.

The scheduler's pass only reads the last vote. The script runs as any hook does, in a task of its own package with a slot and a
time limit (:mod:`wharfinger.hooks.running.enabled_script`), so one that hangs keeps nobody else waiting. What it says follows
from the package that it is part of, from the values that it is given, and from nothing else that could be known here. So its
answer is kept under a key of exactly those, and while that is the same, a reload or a changed wish finds the answer and asks
nobody. A person who wants everything looked at again (``wharfinger.dev/reconcile-requested-at``, ``force-requested-at``) has
it asked again: it may well look at a world that no key has in it.

What fails is no answer and is never kept: whoever comes next asks anew. Answers live as long as the process.
"""

from dataclasses import dataclass

from wharfinger.formats.json.value import JsonObject, JsonValue, checksum
from wharfinger.packages.digest import Digest
from wharfinger.runtime.resources.resources import Directives


@dataclass(frozen=True, slots=True)
class KeptVote:
    """An answer, and the key of what it was given to; ``enabled`` None: there is nothing that could be asked."""

    key: str
    enabled: bool | None
    reason: str


def vote_key(package: Digest, wanted: Directives, values: JsonObject, config_values: JsonObject) -> str:
    """Of all that an answer follows from: the package, what a person asked for, and the two documents the script is given."""
    asked: list[JsonValue] = [wanted.requested, wanted.forced]
    return checksum([package.text, asked, values, config_values])


def globals_for(name: str, global_values: JsonObject, before: tuple[str, ...] | None = None) -> JsonObject:
    """What a script sees under ``global``: all but its own package, of which it is yet to say whether it is on.

    With ``before`` only these: module folders are asked in their order, and each knows of those before it (spec hook-protocol
    §5.6). So no two of them can wait for each other, or switch each other off and on for ever.
    """
    enabled = global_values.get("enabledModules")
    if not isinstance(enabled, list):
        return global_values
    own = (name, f"{name}-crd")
    seen = [each for each in enabled if each not in own]
    if before is not None:
        told = {*before, *(f"{each}-crd" for each in before)}
        seen = [each for each in seen if each in told]
    return {**global_values, "enabledModules": seen}
