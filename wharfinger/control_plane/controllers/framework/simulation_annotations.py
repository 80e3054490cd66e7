"""Annotations that change the simulated behavior of one object. They are described in docs/control-plane-simulation.md.

The annotations of a Pod's controller also apply to the Pod, but the Pod's own annotations take precedence. For a Pod of a
Deployment, the annotations of the Deployment apply, and not those of the ReplicaSet.
"""

import math
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.controllers.framework.objects import controller_of, is_controlled_by
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object, find_str

PREFIX: Final = "wharfinger.dev/"
OBSERVED_AFTER: Final = "wharfinger.dev/observed-after"
READY_AFTER: Final = "wharfinger.dev/ready-after"
NEVER_READY: Final = "wharfinger.dev/never-ready"
FAIL: Final = "wharfinger.dev/fail"
EXIT_CODE: Final = "wharfinger.dev/exit-code"
CRASH_LOOP: Final = "wharfinger.dev/crash-loop"
PULL_FAILURE: Final = "wharfinger.dev/image-pull-failure"
NEVER_SCHEDULED: Final = "wharfinger.dev/never-scheduled"
ALL: Final = (OBSERVED_AFTER, READY_AFTER, NEVER_READY, FAIL, EXIT_CODE, CRASH_LOOP, PULL_FAILURE, NEVER_SCHEDULED)


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """The values of the simulation annotations of one object; ``given`` is true if the object has any such annotation."""

    observed_after_s: float = 0.0
    ready_after_s: float = 0.0
    never_ready: bool = False
    exit_code: int = 0
    crash_loop: bool = False
    pull_failure: bool = False
    never_scheduled: bool = False
    given: bool = False


def read_options(annotations: JsonObject) -> SimulationOptions:
    """Read the simulation annotations. An invalid number of seconds is ignored, an invalid exit code counts as 1."""
    given = {name: value for name, value in annotations.items() if name in ALL}
    if not given:
        return _NONE
    code = find_str(given, EXIT_CODE)
    exit_code = int(code) if code.isascii() and code.isdigit() and len(code) < 4 else 1 if code else 0
    return SimulationOptions(
        observed_after_s=_seconds(find_str(given, OBSERVED_AFTER)),
        ready_after_s=_seconds(find_str(given, READY_AFTER)),
        never_ready=_is_set(given, NEVER_READY),
        exit_code=exit_code or int(_is_set(given, FAIL)),
        crash_loop=_is_set(given, CRASH_LOOP),
        pull_failure=_is_set(given, PULL_FAILURE),
        never_scheduled=_is_set(given, NEVER_SCHEDULED),
        given=True,
    )


_NONE: Final = SimulationOptions()


def pod_annotations(state: ClusterState, pod: JsonObject) -> JsonObject:
    """Return the annotations that apply to a Pod: its own annotations, and the annotations of its controller."""
    own = find_object(pod, "metadata", "annotations")
    owner = _controller(state, pod)
    if owner is None:
        return own
    above = _controller(state, owner)
    if above is not None and find_str(controller_of(owner), "kind") == "Deployment":
        owner = above
    return find_object(owner, "metadata", "annotations") | own


def _controller(state: ClusterState, obj: JsonObject) -> JsonObject | None:
    key = state.controller_key(obj)
    found = None if key is None else state.get(key)
    return found if is_controlled_by(obj, found) else None


def changed(before: JsonValue, after: JsonValue) -> bool:
    """Return whether the simulation annotations of an object changed."""
    old, new = find_object(before, "metadata", "annotations"), find_object(after, "metadata", "annotations")
    return old != new and any(old.get(name) != new.get(name) for name in ALL)


def _is_set(annotations: JsonObject, name: str) -> bool:
    return find_str(annotations, name).lower() == "true"


def _seconds(text: str) -> float:
    try:
        delay = float(text or 0)
    except ValueError:
        return 0.0
    return max(delay, 0.0) if math.isfinite(delay) else 0.0
