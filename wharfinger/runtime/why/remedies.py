"""The remedies for root causes, each as one line. A remedy names the command to run or the field to change.

The tips of :mod:`~wharfinger.runtime.status.reasons` are shared by status and explanations. This module adds commands to the
tips, and has the remedies for problems that have no reason there: work that takes long, or a package that does not exist.
"""

from typing import Final, NamedTuple

from wharfinger.runtime.resources.resources import GROUP
from wharfinger.runtime.status.reasons import Reason, advice

WAIT: Final = "no action is needed, because the work continues automatically; run the command again if it takes long"
PAUSE: Final = (
    "the work continues automatically; if it takes long, read in the daemon's log why that ConfigMap cannot be listed"
)
UNTAKEN: Final = "if the missing package's resource exists, read in the daemon's log why it was not accepted"
STATISTICS: Final = (
    "`wharfinger statistics` shows the limits, and `wharfinger queues dump -o table` shows the packages that have work"
)

_MOST_NAMED: Final = 5


def kubectl_name(name: str) -> str:
    """Return a package as a kubectl argument: ``modules.wharfinger.dev db``, ``applications.wharfinger.dev web -n shop``.

    The API group is included, because CRDs of other programs may have the same names: Argo CD has applications, too.
    """
    namespace, dot, instance = name.partition(".")
    return f"applications.{GROUP} {instance} -n {namespace}" if dot else f"modules.{GROUP} {namespace}"


def patch(name: str, spec: str) -> str:
    """Return the command that sets a field of a package's spec; ``spec`` is JSON."""
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
    "Load": "read in the daemon's log which hook of the package does not answer --config",
}
_ASKED_AGAIN: Final = "often the cause is a setting in spec.settings; the script runs again after a change"
_NAME: Final = " NAME`"
"""The end of a command in a tip, in which NAME is replaced by the package's name."""
_PATCHES: Final = {
    Reason.SUSPENDED: '{"suspend":false}',
    Reason.DYNAMICALLY_DISABLED: '{"enabled":true}',
    Reason.DISABLED_BY_DEFAULT: '{"enabled":true}',
    Reason.DISABLED_BY_HOOK: '{"enabled":true}',
    Reason.NO_RECONCILIATION: '{"maintenance":null}',
}


def of_reason(name: str, reason: str, *, permanent: bool = False) -> str:
    """Return the advice for a failure or a decision with this reason, and the command to follow the advice if there is one.
    ``permanent`` is True if a retry does not help.
    """
    advised = advice(reason, permanent=permanent).replace(_NAME, f" {name}`") or WAIT
    if reason == Reason.DISABLED_BY_SCRIPT:
        return f"{advised}: {_ASKED_AGAIN}"
    spec = next((spec for known, spec in _PATCHES.items() if known == reason), "")
    return f"{advised}: {patch(name, spec)}" if spec else advised


def of_absence(name: str, constraint: str, needed_by: str, *, by_resource: bool = False) -> str:
    """Return the remedy for a package that is needed but not known. ``by_resource`` is True if only ``spec.dependsOn`` names
    it.
    """
    without = f"use a version of {needed_by} that does not need it"
    if by_resource:
        without = _edit(needed_by)
    instead = f", or {without}" if needed_by else ""
    return f"create {_new(name, constraint)}{instead}; the daemon then continues automatically"


class Member(NamedTuple):
    """One member of an any-of group.

    ``version`` is the version of a member that is on, and empty if the member is off. ``there`` is True if the daemon knows the
    package.
    """

    name: str
    constraint: str
    version: str
    there: bool


def of_group(members: tuple[Member, ...]) -> str:
    """Return the remedy if one of several packages must be on in a suitable version, but none is."""
    if not members:
        return "enable one of the named packages; the daemon then continues automatically"
    told = [_member(each) for each in members[:_MOST_NAMED]]
    more = f"; or use one of {len(members) - len(told)} other packages" if len(told) < len(members) else ""
    return f"{'; or '.join(told)}{more}; the daemon then continues automatically"


def of_version(name: str, constraint: str, needed_by: str, *, by_resource: bool = False) -> str:
    """Return the remedy for a dependency that is installed in another version.

    ``by_resource`` is True if only ``spec.dependsOn`` names the dependency.
    """
    other = f"set the version of {kubectl_name(needed_by)} to one that accepts the installed version of {name}"
    return f"{_another(name, constraint)}, or {_edit(needed_by) if by_resource else other}"


def of_closing(name: str, closing: tuple[str, ...]) -> str:
    """Return the remedy for a dependency cycle that a package closes.

    ``closing`` are the packages in its ``spec.dependsOn`` that close the cycle. It is empty if the cycle exists without
    ``spec.dependsOn``.
    """
    if not closing:
        return of_reason(name, Reason.DEPENDENCY_CYCLE)
    return f"{_edit(name)}: these entries close the cycle: {', '.join(closing[:_MOST_NAMED])}"


def _member(member: Member) -> str:
    name, constraint, version, there = member
    if version:
        return _another(name, constraint)
    return (
        f"enable {name} (`wharfinger why {name}` says why it is off)" if there else f"create {_new(name, constraint)}"
    )


def of_hook(package: str, hook: str) -> str:
    """Return the remedy for work that waits until a run of a hook has ended."""
    return (
        f"if it takes too long, read `wharfinger logs {package} --hook {hook}`; its run is stopped after --hook-timeout"
    )


def of_work(task: str) -> str:
    """Return the remedy for a task that runs or waits to run."""
    slow = next((what for known, what in _SLOW.items() if task.startswith(known)), "")
    return (
        f"no action is needed, because the work continues automatically; if it takes too long, {slow}" if slow else WAIT
    )


def of_failed_hook(package: str, hook: str) -> str:
    """Return the remedy for a hook that failed and is run again."""
    return f"read `wharfinger logs {package} --hook {hook}`, and fix the cause; the daemon retries automatically"


def of_slots(kind: str) -> str:
    """Return the remedy if all slots of a limit are in use."""
    return f"wait for a slot, or raise the limit with `wharfinger run --max-{kind} N`; {STATISTICS}"


def of_shares() -> str:
    """Return the remedy if work waits although slots are free, because the free slots are reserved for other namespaces,
    registries and packages.
    """
    return (
        "the free slots are reserved for other namespaces, registries and packages; wait for the end of other work of the "
        "package's namespace, of its registry, or of packages that were slow lately; `wharfinger run --max-namespace-share` "
        f"and `--max-registry-share` set how many slots are reserved; {STATISTICS}"
    )


def of_circle(circle: str) -> str:
    """Return the remedy for packages that wait for each other."""
    return f"break the circle {circle}: install a version of one of these packages that does not need the next one"


def of_more(name: str) -> str:
    """Return the remedy if the chain of causes is too long to be followed to its end."""
    return f"the chain of causes is longer; continue with `wharfinger why {name}`"
