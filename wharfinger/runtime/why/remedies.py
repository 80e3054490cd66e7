"""What to do about a root cause, in one line: for a person who is woken by it and wants to type something.

What a word of :mod:`~wharfinger.runtime.status.reasons` advises is said there, for status and explanations alike; here are the
commands that go with it, and what helps against that which has no word: work that takes long, a package that is not there.
"""

from typing import Final, NamedTuple

from wharfinger.runtime.resources.resources import GROUP
from wharfinger.runtime.status.reasons import Reason, advice

WAIT: Final = "nothing to do: it continues automatically; ask again if it takes long"
PAUSE: Final = (
    "it continues automatically; if it takes long, read in the daemon's log why that ConfigMap cannot be listed"
)
UNTAKEN: Final = "if its resource exists, read in the daemon's log why it was not accepted"
STATISTICS: Final = (
    "`wharfinger statistics` shows the limits, `wharfinger queues dump -o table` the packages that have work"
)

_MOST_NAMED: Final = 5


def kubectl_name(name: str) -> str:
    """A package as kubectl is told it: ``modules.wharfinger.dev db``, ``applications.wharfinger.dev web -n shop``.

    With the group, because another program's definitions may have the same short words: Argo CD has applications, too.
    """
    namespace, dot, instance = name.partition(".")
    return f"applications.{GROUP} {instance} -n {namespace}" if dot else f"modules.{GROUP} {namespace}"


def patch(name: str, spec: str) -> str:
    """The command that sets a field of a package's spec; ``spec`` is JSON."""
    return f"kubectl patch {kubectl_name(name)} --type=merge -p '{{\"spec\":{spec}}}'"


def _new(name: str, constraint: str) -> str:
    namespace, dot, instance = name.partition(".")
    what = f"the Application {instance} in namespace {namespace}" if dot else f"the Module {name}"
    return f"{what} in a version that matches {constraint}" if constraint else what


def _another(name: str, constraint: str) -> str:
    return f"set spec.packageVersion of {kubectl_name(name)} to a version that matches {constraint}"


def _edit(name: str) -> str:
    return f"edit spec.dependsOn of {kubectl_name(name)}"


_SLOW: Final = {
    "Download": "check whether the PackageRepository's registry answers",
    "Load": "read in the daemon's log which of its hooks does not answer --config",
}
_ASKED_AGAIN: Final = "most often that is spec.settings; the script is asked again after the change"
_PATCHES: Final = {
    Reason.SUSPENDED: '{"suspend":false}',
    Reason.DYNAMICALLY_DISABLED: '{"enabled":true}',
    Reason.DISABLED_BY_DEFAULT: '{"enabled":true}',
    Reason.DISABLED_BY_HOOK: '{"enabled":true}',
    Reason.NO_RECONCILIATION: '{"maintenance":null}',
}


def of_reason(name: str, reason: str, *, permanent: bool = False) -> str:
    """What a reason advises, with the command that does it where one does; ``permanent``: trying again does not help."""
    advised = advice(reason, permanent=permanent) or WAIT
    if reason == Reason.DISABLED_BY_SCRIPT:
        return f"{advised}: {_ASKED_AGAIN}"
    spec = next((spec for known, spec in _PATCHES.items() if known == reason), "")
    return f"{advised}: {patch(name, spec)}" if spec else advised


def of_absence(name: str, constraint: str, needed_by: str, *, by_resource: bool = False) -> str:
    """What to do about a package that is needed and not known; ``by_resource``: only ``spec.dependsOn`` names it."""
    without = f"use a version of {needed_by} that does not need it"
    if by_resource:
        without = _edit(needed_by)
    instead = f", or {without}" if needed_by else ""
    return f"create {_new(name, constraint)}{instead}; that is noticed automatically"


class Member(NamedTuple):
    """One of several packages of which one must be on; ``version`` that it is on in, and ``there``: the daemon knows it."""

    name: str
    constraint: str
    version: str
    there: bool


def of_group(members: tuple[Member, ...]) -> str:
    """What to do where one of several packages must be on, in a version that will do, and none is."""
    if not members:
        return "enable one of the named packages; that is noticed automatically"
    told = [_member(each) for each in members[:_MOST_NAMED]]
    more = f"; or one of {len(members) - len(told)} more" if len(told) < len(members) else ""
    return f"{'; or '.join(told)}{more}; that is noticed automatically"


def of_version(name: str, constraint: str, needed_by: str, *, by_resource: bool = False) -> str:
    """What to do about a dependency that is there in another version; ``by_resource``: only ``spec.dependsOn`` names it."""
    other = f"that of {kubectl_name(needed_by)} to a version that accepts {name} as it is"
    return f"{_another(name, constraint)}, or {_edit(needed_by) if by_resource else other}"


def of_closing(name: str, closing: tuple[str, ...]) -> str:
    """What to do about a circle that a package's ``spec.dependsOn`` closes by naming these; of none, one is in the packages."""
    if not closing:
        return of_reason(name, Reason.DEPENDENCY_CYCLE)
    return f"{_edit(name)}: its entries close the cycle ({', '.join(closing[:_MOST_NAMED])})"


def _member(member: Member) -> str:
    name, constraint, version, there = member
    if version:
        return _another(name, constraint)
    return (
        f"enable {name} (`wharfinger why {name}` says what keeps it off)"
        if there
        else f"create {_new(name, constraint)}"
    )


def of_hook(hook: str) -> str:
    """What to do about a hook that has not ended."""
    return (
        f"if it takes too long, read the lines of {hook} in the daemon's log; its run is stopped after --hook-timeout"
    )


def of_work(task: str) -> str:
    """What to do about a task that is at work, or waits to be."""
    slow = next((what for known, what in _SLOW.items() if task.startswith(known)), "")
    return f"nothing to do: it continues automatically; if it takes too long, {slow}" if slow else WAIT


def of_failed_hook(hook: str) -> str:
    """What to do about a hook that failed, and is run again."""
    return f"read the lines of {hook} in the daemon's log, and fix the cause; it is retried automatically"


def of_slots(kind: str) -> str:
    """What to do about a limit that is in use up to its last slot."""
    return f"wait for a slot, or raise the limit with `wharfinger run --max-{kind} N`; {STATISTICS}"


def of_shares() -> str:
    """What to do where slots are free, and are kept for other namespaces, registries and packages."""
    return (
        "wait for running work of its own namespace or registry, or of packages that were slow lately: the free slots are "
        f"reserved for others; `wharfinger run --max-namespace-share` and `--max-registry-share` set how many; {STATISTICS}"
    )


def of_circle(circle: str) -> str:
    """What to do about packages that wait for each other."""
    return f"install another version of one of {circle} that does not need the next package"


def of_more(name: str) -> str:
    """What to do where a chain is too long to be followed to its end."""
    return f"the chain is longer; continue with `wharfinger why {name}`"
