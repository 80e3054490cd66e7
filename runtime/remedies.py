"""What to do about a root cause, in one line: for a person who is woken by it and wants to type something.

What a word of :mod:`~wharfinger.runtime.reasons` advises is said there, for status and explanations alike; here are the commands
that go with it, and what helps against that which has no word: work that takes long, a package that is not there.
"""

from typing import Final

from wharfinger.runtime.reasons import Reason, advice

WAIT: Final = "nothing to do: it goes on by itself; ask again if it takes long"
STATISTICS: Final = "`wharfinger statistics` shows the limits, `wharfinger queues dump -o table` who has work"


def kubectl_name(name: str) -> str:
    """A package as kubectl is told it: ``module db``, ``application web -n shop``."""
    namespace, dot, instance = name.partition(".")
    return f"application {instance} -n {namespace}" if dot else f"module {namespace}"


def patch(name: str, spec: str) -> str:
    """The command that sets a field of a package's spec; ``spec`` is JSON."""
    return f"kubectl patch {kubectl_name(name)} --type=merge -p '{{\"spec\":{spec}}}'"


_SLOW: Final = {
    "Download": "look whether the PackageRepository's registry answers",
    "Load": "look in the daemon's log which of its hooks does not answer --config",
}
_ASKED_AGAIN: Final = "change what it objects to, most often in spec.settings; it is asked again then"
_PATCHES: Final = {
    Reason.SUSPENDED: '{"suspend":false}',
    Reason.DYNAMICALLY_DISABLED: '{"enabled":true}',
    Reason.DISABLED_BY_DEFAULT: '{"enabled":true}',
    Reason.NO_RECONCILIATION: '{"maintenance":null}',
}


def of_reason(name: str, reason: str, *, permanent: bool = False) -> str:
    """What a reason advises, with the command that does it where one does; ``permanent``: trying again does not help."""
    advised = advice(reason, permanent=permanent) or WAIT
    if reason == Reason.DISABLED_BY_SCRIPT:
        return f"{advised}: {_ASKED_AGAIN}"
    spec = next((spec for known, spec in _PATCHES.items() if known == reason), "")
    return f"{advised}: {patch(name, spec)}" if spec else advised


def of_absence(name: str, constraint: str, needed_by: str) -> str:
    """What to do about a package that is needed and not there."""
    namespace, dot, instance = name.partition(".")
    what = f"the Application {instance} in namespace {namespace}" if dot else f"the Module {name}"
    fitting = f" in a version that is {constraint}" if constraint else ""
    without = f", or use a version of {needed_by} that does not need it" if needed_by else ""
    return f"create {what}{fitting}{without}; that is noticed by itself"


def of_group(members: tuple[tuple[str, bool], ...]) -> str:
    """What to do where one of several packages must be on, of which none is; each with whether it is there."""
    known = [name for name, there in members if there]
    ask = f"; `wharfinger why {known[0]}` says what keeps {known[0]} off" if known else ""
    return advice(Reason.ANY_OF_UNMET) + ask


def of_version(name: str, constraint: str, needed_by: str) -> str:
    """What to do about a dependency that is there in another version."""
    return (
        f"set spec.packageVersion of {kubectl_name(name)} to one that is {constraint}, "
        f"or that of {kubectl_name(needed_by)} to one that takes {name} as it is"
    )


def of_hook(hook: str) -> str:
    """What to do about a hook that has not ended."""
    return f"if it takes too long, read the lines of {hook} in the daemon's log; its run is ended after --hook-timeout"


def of_work(task: str) -> str:
    """What to do about a task that is at work, or waits to be."""
    slow = next((what for known, what in _SLOW.items() if task.startswith(known)), "")
    return f"nothing to do: it goes on by itself; if it takes too long, {slow}" if slow else WAIT


def of_failed_hook(hook: str) -> str:
    """What to do about a hook that failed, and is run again."""
    return f"read the lines of {hook} in the daemon's log, and mend what it fails on; it is tried again by itself"


def of_slots(kind: str) -> str:
    """What to do about a limit that is in use up to its last slot."""
    return f"wait for a slot, or have more with `wharfinger run --max-{kind} N`; {STATISTICS}"


def of_circle(circle: str) -> str:
    """What to do about packages that wait for each other."""
    return f"one of them must not need the next: install another version of one of {circle}"


def of_more(name: str) -> str:
    """What to do where a chain is too long to be followed to its end."""
    return f"ask on with `wharfinger why {name}`"
