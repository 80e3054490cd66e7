"""The subresource ``binding`` of Pods, which assigns a Pod to a node, and ``eviction``, which deletes a Pod.

An eviction is a delete that first checks the Pod's disruption budget (``pkg/registry/core/pod/storage/eviction.go``): if the
budget does not allow the eviction, the answer is 429, and the client retries.
"""

from dataclasses import replace
from typing import Final

from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.label_selectors import is_readable, selects
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map
from wharfinger.control_plane.special_endpoints.endpoint import Answer, EndpointRequest, EndpointTable
from wharfinger.control_plane.special_endpoints.pod_streams import log, proxy, stream
from wharfinger.control_plane.special_endpoints.request_admission import admit, changed
from wharfinger.control_plane.special_endpoints.review_bodies import check_name_parameter, kind_served, read_body
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions, parse_delete_options
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import not_supported, required
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.kube.times import format_time

POLICY: Final = "policy"
_FORMER: Final = "policy/v1beta1"
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_DISRUPTED: Final = 2000
_SUCCESS: Final[JsonObject] = {
    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201
}  # fmt: skip


def _with_condition(
    asked: EndpointRequest, pod: JsonObject, kind: str, reason: str = "", message: str = ""
) -> JsonObject:
    """Return a Pod with a condition set to True; a condition that already is True keeps its transition time."""
    now = format_time(asked.backend.now())
    said: JsonObject = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    said |= {name: value for name, value in (("reason", reason), ("message", message)) if value}
    state = find_object(pod, "status")
    conditions: list[JsonValue] = [item for item in parts(state, "conditions") if text(item, "type") != kind]
    for item in parts(state, "conditions"):
        if text(item, "type") == kind and text(item, "status") == "True":
            said["lastTransitionTime"] = item.get("lastTransitionTime")
    return {**pod, "status": {**state, "conditions": [*conditions, said]}}


def _pod(asked: EndpointRequest, name: str) -> JsonObject:
    found = asked.backend.object("", "pods", asked.namespace, name)
    if found is None:
        raise status.StatusError(404, "NotFound", f'pods "{name}" not found', {"name": name, "kind": "pods"})
    return found


def bind(asked: EndpointRequest) -> Answer:
    """Assign a Pod to a node. Raises StatusError."""
    form = kind_served("", "v1", "Binding")
    body = changed(asked, read_body(asked, form), form)
    name = text(body, "metadata", "name")
    if asked.name and name != asked.name:
        raise status.bad_request("name in URL does not match name in Binding object")
    _check_target(body)
    admit(asked, body, form)
    check_name_parameter(name)
    pod = _pod(asked, name)
    uid, version = text(body, "metadata", "uid"), text(body, "metadata", "resourceVersion")
    if uid and uid != text(pod, "metadata", "uid"):
        raise _conflict("pods", name, _precondition(asked, name, "UID", uid, text(pod, "metadata", "uid")))
    if version and version != text(pod, "metadata", "resourceVersion"):
        known = text(pod, "metadata", "resourceVersion")
        raise _conflict("pods", name, _precondition(asked, name, "ResourceVersion", version, known))
    node = text(pod, "spec", "nodeName")
    if text(pod, "metadata", "deletionTimestamp"):
        raise _conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node:
        raise _conflict("pods/binding", name, f'pod {name} is already assigned to node "{node}"')
    if parts(pod, "spec", "schedulingGates"):
        raise _conflict("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")
    metadata = dict(part(pod, "metadata") or {})
    for field in ("annotations", "labels"):
        if added := text_map(body, "metadata", field):
            metadata[field] = {**text_map(metadata, field), **added}
    spec = {**(part(pod, "spec") or {}), "nodeName": text(body, "target", "name")}
    state = {key: value for key, value in find_object(pod, "status").items() if key != "nominatedNodeName"}
    bound = _with_condition(asked, {**pod, "metadata": metadata, "spec": spec, "status": state}, "PodScheduled")
    if not asked.options.dry_run:
        _put(asked, "pods", name, bound)
    return dict(_SUCCESS)


def _check_target(body: JsonObject) -> None:
    kind, errors = text(body, "target", "kind"), []
    if kind and kind != "Node":
        errors.append(not_supported("target.kind", kind, ("Node", "<empty>")))
    if not text(body, "target", "name"):
        errors.append(required("target.name"))
    if errors:
        said = str(errors[0]) if len(errors) == 1 else f"[{', '.join(map(str, errors))}]"
        raise status.internal(said)


def _precondition(asked: EndpointRequest, name: str, what: str, given: str, known: str) -> str:
    key = f"/registry/pods/{asked.namespace}/{name}"
    why = f"Precondition failed: {what} in precondition: {given}, {what} in object meta: {known}"
    return f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


def _conflict(resource: str, name: str, why: str) -> status.StatusError:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return status.StatusError(409, "Conflict", message, {"name": name, "kind": resource})


def _put(asked: EndpointRequest, plural: str, name: str, obj: JsonObject) -> None:
    group = POLICY if plural == "poddisruptionbudgets" else ""
    served = asked.backend.catalog.find(group, "v1", plural)
    if served is not None:
        asked.backend.put(asked.backend.key(served, asked.namespace, name), obj)


def evict(asked: EndpointRequest) -> JsonObject:
    """Delete a Pod if its disruption budget allows it. Raises StatusError: 429 if the budget does not allow it."""
    if text(asked.body, "apiVersion") == _FORMER and isinstance(asked.body, dict):  # both versions have the same form
        asked = replace(asked, body={**asked.body, "apiVersion": "policy/v1"})
    form = kind_served("policy", "v1", "Eviction")
    body = changed(asked, read_body(asked, form), form)
    if text(body, "metadata", "name") != asked.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    options = parse_delete_options({}, part(body, "deleteOptions") or {})
    admit(asked, body, form)
    dry_run = options.dry_run or asked.options.dry_run
    pod = _pod(asked, asked.name)
    if not _may_ignore_budgets(pod):
        budgets = _budgets(asked, pod)
        if len(budgets) > 1:
            why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise status.StatusError(500, "", why)
        if budgets and not _is_unprotected(pod, budgets[0]):
            _count_disruption(asked, budgets[0], dry_run=dry_run)
    if dry_run:
        return dict(_SUCCESS)
    uid, known = options.uid, text(pod, "metadata", "uid")
    version, current = options.resource_version, text(pod, "metadata", "resourceVersion")
    again = "The object might have been deleted and then recreated"
    if uid and uid != known:
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({known}). {again}"
        raise _conflict("Pod", asked.name, why)
    if version and version != current:
        why = f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
        raise _conflict("Pod", asked.name, f"{why}({current}). The object might have been modified")
    marked = _with_condition(asked, pod, "DisruptionTarget", "EvictionByEvictionAPI", "Eviction API: evicting")
    _put(asked, "pods", asked.name, marked)
    served = asked.backend.catalog.find("", "v1", "pods")
    if served is not None:
        delete(asked.backend, served, asked.namespace, asked.name, _unconditional(body))
    return dict(_SUCCESS)


def _unconditional(body: JsonObject) -> DeleteOptions:
    asked = {key: value for key, value in (part(body, "deleteOptions") or {}).items() if key != "preconditions"}
    return parse_delete_options({}, asked)


def _may_ignore_budgets(pod: JsonObject) -> bool:
    over = text(pod, "status", "phase") in {"Succeeded", "Failed", "Pending"}
    return over or bool(text(pod, "metadata", "deletionTimestamp"))


def _budgets(asked: EndpointRequest, pod: JsonObject) -> list[JsonObject]:
    labels = text_map(pod, "metadata", "labels")
    found = asked.backend.objects(POLICY, "poddisruptionbudgets", asked.namespace)
    selectors = [(budget, (part(budget, "spec") or {}).get("selector")) for budget in found]
    return [budget for budget, selector in selectors if is_readable(selector) and selects(selector, dict(labels))]


def _is_unprotected(pod: JsonObject, budget: JsonObject) -> bool:
    """Return whether a Pod is not ready, and may be evicted without counting a disruption against its budget."""
    conditions = parts(pod, "status", "conditions")
    if any(text(item, "type") == "Ready" and text(item, "status") == "True" for item in conditions):
        return False
    if text(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    wanted = number(budget, "status", "desiredHealthy")
    return number(budget, "status", "currentHealthy") >= wanted > 0


def _count_disruption(asked: EndpointRequest, budget: JsonObject, *, dry_run: bool) -> None:
    """Count one disruption against a budget. Raises StatusError if the budget does not allow it."""
    name, state = text(budget, "metadata", "name"), find_object(budget, "status")
    allowed = number(state, "disruptionsAllowed")
    if number(state, "observedGeneration") < number(budget, "metadata", "generation"):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    disrupted = part(state, "disruptedPods") or {}
    why = "pdb disruptions allowed is negative" if allowed < 0 else ""
    if len(disrupted) > _MOST_DISRUPTED:
        why = why or "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
    if why:
        resource = f"poddisruptionbudget.{POLICY}"
        message = f'{resource} "{name}" is forbidden: {why}'
        details: JsonObject = {"name": name, "group": POLICY, "kind": "poddisruptionbudget"}
        raise status.StatusError(403, "Forbidden", message, details)
    if allowed == 0:
        raise _too_many(_refusal_message(name, state), 0)
    if dry_run:
        return
    now = format_time(asked.backend.now())
    changed = {**state, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, asked.name: now}}
    if allowed == 1:
        changed["conditions"] = _no_disruptions(state, number(budget, "metadata", "generation"), now)
    _put(asked, "poddisruptionbudgets", name, {**budget, "status": changed})


def _no_disruptions(state: JsonObject, generation: int, now: str) -> list[JsonValue]:
    known = [item for item in parts(state, "conditions") if text(item, "type") != "DisruptionAllowed"]
    said: JsonObject = {
        "type": "DisruptionAllowed", "status": "False", "observedGeneration": generation, "lastTransitionTime": now,
        "reason": "InsufficientPods", "message": "",
    }  # fmt: skip
    return [*known, said]


def _refusal_message(name: str, state: JsonObject) -> str:
    found = [item for item in parts(state, "conditions") if text(item, "type") == "DisruptionAllowed"]
    condition = found[0] if found and text(found[0], "status") == "False" and text(found[0], "message") else None
    reason, message = text(condition, "reason"), text(condition, "message")
    wanted, healthy = number(state, "desiredHealthy"), number(state, "currentHealthy")
    if condition is not None and reason == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if healthy <= wanted:
        return f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
    if condition is not None:
        return f"The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _too_many(why: str, seconds: int) -> status.StatusError:
    details: JsonObject = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if seconds:
        details["retryAfterSeconds"] = seconds
    return status.StatusError(429, "TooManyRequests", _REFUSED, details, retry_after=seconds)


POD_ENDPOINTS: Final[EndpointTable] = {
    "Binding": bind,
    "Pod/attach": stream,
    "Pod/binding": bind,
    "Pod/eviction": evict,
    "Pod/exec": stream,
    "Pod/log": log,
    "Pod/portforward": stream,
    "Pod/proxy": proxy,
}
