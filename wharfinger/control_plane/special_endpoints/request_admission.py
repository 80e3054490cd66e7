"""The admission of reviews: webhooks are called for reviews as they are for stored objects, but policies do not apply.

Policies are left out, because one that intercepts reviews may break the cluster (kube-apiserver,
``pkg/kubeapiserver/admission/exclusion``). Mutating webhooks change a review before it is checked, and validating ones judge it
after that, before it is answered.
"""

from functools import partial

from wharfinger.control_plane.api.common.admission import Admission, Mutation, Operation
from wharfinger.control_plane.special_endpoints.endpoint import Asked
from wharfinger.control_plane.verbs.creation import completed
from wharfinger.formats.json.value import JsonObject, find_str


def changed(asked: Asked, review: JsonObject) -> JsonObject:
    """Return the review with the changes of mutating webhooks. Raises StatusError, and VerdictsNeededError."""
    policies = asked.backend.policies
    if policies is None:
        return review
    mutation = Mutation(partial(completed, asked.served, asked.backend.now()))
    review = policies.mutate(_admission(asked, review), mutation) or review
    if mutation.wanted:
        mutation.second = True
        review = policies.mutate(_admission(asked, review), mutation) or review
    return review


def admit(asked: Asked, review: JsonObject) -> None:
    """Call the validating webhooks for a review. Raises StatusError, and VerdictsNeededError."""
    if asked.backend.policies is not None:
        asked.backend.policies.enforce(_admission(asked, review))


def _admission(asked: Asked, review: JsonObject) -> Admission:
    options, name = asked.options, find_str(review, "metadata", "name")
    return Admission(
        asked.backend, options.user, asked.served.kind, Operation.CREATE, "", asked.namespace, name, review, None,
        dry_run=options.dry_run, warnings=options.warnings, version=asked.served.version.name,
        policies=asked.backend.policies, asked=options.asked, own=options.own,
    )  # fmt: skip
