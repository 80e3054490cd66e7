"""A wrapper for a controller that delays the reconciliation of changed objects.

The annotation ``wharfinger.dev/observed-after`` of an object states the delay in seconds.

In a real cluster a Deployment's ``metadata.generation`` is ahead of its ``status.observedGeneration`` while its controller
is busy with other objects. In a large cluster this takes seconds. The delay simulates this.
"""

from dataclasses import replace

from wharfinger.control_plane.controllers.framework.controller import Ages, Controller
from wharfinger.control_plane.controllers.framework.objects import generation_of, uid_of
from wharfinger.control_plane.controllers.framework.simulation_annotations import read_options
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.storage.interface import Key
from wharfinger.formats.json.value import find_int, find_object


def observing_late(state: ClusterState, controller: Controller) -> Controller:
    """Return a controller that reconciles a new generation of an object only after the delay in the object's annotation."""
    ages = Ages()

    def reconcile(key: Key) -> float | None:
        obj = state.get(key)
        if obj is None:
            ages.forget(key)
            return controller.reconcile(key)
        delay_s = read_options(find_object(obj, "metadata", "annotations")).observed_after_s
        generation = generation_of(obj)
        if delay_s and find_int(obj, "status", "observedGeneration") < generation:
            left_s = delay_s - ages.age(key, f"{uid_of(obj)} {generation}")
            if left_s > 0:
                return left_s
        return controller.reconcile(key)

    return replace(controller, reconcile=reconcile)
