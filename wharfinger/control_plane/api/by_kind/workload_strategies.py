"""Strategies of workloads: apps, batch, autoscaling, policy, and replication controllers."""

from typing import Final

from wharfinger.control_plane.api.by_kind.workload_defaults import TEMPLATE_GENERATION
from wharfinger.control_plane.api.core.pods.template_strategy import with_templates
from wharfinger.control_plane.objects.object_metadata import with_metadata
from wharfinger.control_plane.objects.strategy import ClusterView, Strategy
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object, find_str
from wharfinger.kube.go_texts import read_number

NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")


def _new_job(obj: JsonObject, _view: ClusterView) -> JsonObject:
    """Generate the selector of a Job and the matching labels of its template, unless ``manualSelector`` is true.

    The selector matches the Job's UID. A Job without labels gets those of its template, including the generated ones.
    """
    spec = find_object(obj, "spec")
    own = find(obj, "metadata", "labels")
    if spec.get("manualSelector") is True:
        return obj
    name, uid = find_str(obj, "metadata", "name"), find_str(obj, "metadata", "uid")
    drawn: JsonObject = {**dict.fromkeys(NAME_LABELS, name), **dict.fromkeys(UID_LABELS, uid)}
    template, selector = find_object(spec, "template"), find_object(spec, "selector")
    labels: JsonObject = {**drawn, **find_object(template, "metadata", "labels")}
    metadata: JsonObject = {**find_object(template, "metadata"), "labels": labels}
    wanted: JsonObject = {UID_LABELS[1]: uid, **find_object(selector, "matchLabels")}
    spec = {
        **spec,
        "selector": {**selector, "matchLabels": wanted},
        "template": {**template, "metadata": metadata},
    }
    shared = not own or own is find(obj, "spec", "template", "metadata", "labels")
    return {**(with_metadata(obj, {"labels": labels}) if shared else obj), "spec": spec}


def template_generation(obj: JsonObject) -> int:
    """Return how often the template of a DaemonSet has changed. A deprecated annotation contains this number."""
    found = find(obj, "metadata", "annotations", TEMPLATE_GENERATION)
    return read_number(found, signed=True)[0] if isinstance(found, str) else 0


def _with_template_generation(obj: JsonObject, count: int) -> JsonObject:
    annotations: JsonObject = {**find_object(obj, "metadata", "annotations"), TEMPLATE_GENERATION: str(count)}
    return with_metadata(obj, {"annotations": annotations})


def _new_daemon_set(obj: JsonObject, _view: ClusterView) -> JsonObject:
    return _with_template_generation(obj, max(template_generation(obj), 1))


def _daemon_set(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    changed = find(new, "spec", "template") != find(old, "spec", "template")
    return _with_template_generation(new, template_generation(old) + changed)


def _daemon_set_status(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    return _with_template_generation(new, template_generation(old))


def _new_stateful_set(obj: JsonObject, _view: ClusterView) -> JsonObject:
    return _without_unavailable(obj)


def _stateful_set(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    return new if _unavailable(old) is not None else _without_unavailable(new)


def _unavailable(obj: JsonObject) -> JsonValue:
    return find(obj, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")


def _without_unavailable(obj: JsonObject) -> JsonObject:
    """Return the object without the field of a disabled feature (``MaxUnavailableStatefulSet``)."""
    if _unavailable(obj) is None:
        return obj
    spec = find_object(obj, "spec")
    strategy = find_object(spec, "updateStrategy")
    rolling = {
        name: value for name, value in find_object(strategy, "rollingUpdate").items() if name != "maxUnavailable"
    }
    return {**obj, "spec": {**spec, "updateStrategy": {**strategy, "rollingUpdate": rolling}}}


WORKLOAD_STRATEGIES: Final[dict[str, Strategy]] = with_templates(
    {
        "DaemonSet.apps": Strategy(create=_new_daemon_set, update=_daemon_set, status=_daemon_set_status),
        "Job.batch": Strategy(create=_new_job),
        "StatefulSet.apps": Strategy(create=_new_stateful_set, update=_stateful_set),
    }
)
