"""The admission of requests that are not answered from storage alone: reviews, evictions, bindings and token requests.

Mutating policies and webhooks change the object before it is validated. Validating policies and webhooks are called after the
validation, before the request has any effect. Policies (unlike webhooks) do not apply to reviews, because a policy for reviews
could break the cluster (kube-apiserver, ``pkg/kubeapiserver/admission/exclusion``). Connections are in
:mod:`~wharfinger.control_plane.special_endpoints.connections`.
"""

from collections.abc import Callable
from functools import partial

from wharfinger.control_plane.api.common.admission import Admission, Form, Mutation, Operation, Policies
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.special_endpoints.endpoint import EndpointRequest
from wharfinger.control_plane.verbs.creation import completed
from wharfinger.formats.json.value import JsonObject, find_str


def changed(asked: EndpointRequest, obj: JsonObject, form: Served | None = None) -> JsonObject:
    """Return the object with the changes of mutating policies and webhooks. Raises StatusError if a policy or a webhook refuses
    the request, and VerdictsNeededError if webhooks have to be called first.

    ``form`` is the kind of the object, if it is not the kind of the resource.
    """
    policies = asked.backend.policies
    if policies is None:
        return obj
    completing = partial(completed, form or asked.served, asked.backend.now())
    return mutated(policies, lambda each: _admission(asked, each, form), completing, obj)


def mutated(
    policies: Policies,
    admission_of: Callable[[JsonObject], Admission],
    completing: Callable[[str, JsonObject], JsonObject],
    obj: JsonObject,
) -> JsonObject:
    """Return an object as all mutating policies and webhooks change it.

    If a policy or a webhook changes the object, the ones with ``reinvocationPolicy: IfNeeded`` may be called a second time.

    Raises StatusError if the request is refused, and VerdictsNeededError if webhooks have to be called first.
    """
    by_policies, by_webhooks = Mutation(completing), Mutation(completing)

    def once(obj: JsonObject) -> JsonObject:
        obj = policies.mutate_by_policies(admission_of(obj), by_policies) or obj
        return policies.mutate(admission_of(obj), by_webhooks) or obj

    obj = once(obj)
    if by_policies.wanted or by_webhooks.wanted:
        by_policies.second = by_webhooks.second = True
        obj = once(obj)
    return obj


def admit(asked: EndpointRequest, obj: JsonObject, form: Served | None = None) -> None:
    """Call the validating policies and webhooks for an object. Raises StatusError if one of them denies the request, and
    VerdictsNeededError if webhooks have to be called first.
    """
    if asked.backend.policies is not None:
        asked.backend.policies.enforce(_admission(asked, obj, form))


def _admission(asked: EndpointRequest, obj: JsonObject, form: Served | None) -> Admission:
    options, name = asked.options, asked.name or find_str(obj, "metadata", "name")
    return Admission(
        asked.backend, options.user, asked.served.kind, Operation.CREATE, asked.subresource, asked.namespace, name, obj, None,
        dry_run=options.dry_run, warnings=options.warnings, version=asked.served.version.name,
        policies=asked.backend.policies, asked=options.asked, own=options.own,
        form=None if form is None else Form(form.kind, form.version),
    )  # fmt: skip
