"""The strategy of kinds with a pod template: it drops the fields of features that are off."""

from collections.abc import Mapping, Sequence
from typing import Final

from wharfinger.control_plane.api.core.pods.strategy import without_disabled
from wharfinger.control_plane.objects.strategy import ClusterView, Strategy
from wharfinger.formats.json.value import JsonObject

_SPEC: Final = ("spec", "template", "spec")
TEMPLATES: Final[Mapping[str, Sequence[str]]] = {
    "CronJob.batch": ("spec", "jobTemplate", *_SPEC),
    "DaemonSet.apps": _SPEC,
    "Deployment.apps": _SPEC,
    "Job.batch": _SPEC,
    "PodTemplate": ("template", "spec"),
    "ReplicaSet.apps": _SPEC,
    "ReplicationController": _SPEC,
    "StatefulSet.apps": _SPEC,
}
"""The path of the pod spec in each kind that has a pod template."""


def with_templates(strategies: Mapping[str, Strategy]) -> dict[str, Strategy]:
    """Return the strategies, extended so that kinds with a pod template drop the fields of features that are off."""
    return {
        **strategies,
        **{kind: _of_template(strategies.get(kind, Strategy()), path) for kind, path in TEMPLATES.items()},
    }


def _of_template(strategy: Strategy, path: Sequence[str]) -> Strategy:
    def create(obj: JsonObject, view: ClusterView) -> JsonObject:
        return strategy.create(_without_disabled(obj, path), view)

    def update(new: JsonObject, old: JsonObject, view: ClusterView) -> JsonObject:
        return strategy.update(_without_disabled(new, path), old, view)

    return Strategy(create=create, update=update, status=strategy.status, subresources=strategy.subresources)


def _without_disabled(obj: JsonObject, path: Sequence[str]) -> JsonObject:
    """Drop the fields of features that are off from the pod spec at a path; return the object itself if there are none."""
    if not path:
        return without_disabled(obj)
    inner = obj.get(path[0])
    if not isinstance(inner, dict):
        return obj
    kept = _without_disabled(inner, path[1:])
    return obj if kept is inner else {**obj, path[0]: kept}
