"""The mutating webhooks of a write: they are called one after the other, and each gets the object with the changes of the
previous ones.

A webhook with ``reinvocationPolicy: IfNeeded`` is called a second time if the object has changed since its first call. As with
validating webhooks, the calls themselves are made between two attempts of the write (`VerdictsNeededError`).

Source: kube-apiserver, ``apiserver/pkg/admission/plugin/webhook/mutating``.
"""

from collections.abc import Sequence

from wharfinger.control_plane.admission.request import Resource, resource_of, seen
from wharfinger.control_plane.admission.webhook_reviews import Verdict
from wharfinger.control_plane.admission.webhooks import EXEMPT, VERDICTS, VerdictsNeededError, Webhook, WebhookCall
from wharfinger.control_plane.api.common.admission import Admission, Mutation
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, ShapeError, as_object
from wharfinger.kube.json_patch import JsonPatchError, apply_json_patch


def mutate(
    admission: Admission, webhooks: Sequence[Webhook], mutation: Mutation, backend: Backend
) -> JsonObject | None:
    """Call the matching webhooks in turn, and return the object as they changed it; None for a delete.

    Raises StatusError if a webhook refuses the write, and VerdictsNeededError if a webhook has to be called first.
    """
    asked = resource_of(admission)
    if asked is None or admission.kind.group_kind in EXEMPT:
        return admission.obj
    if mutation.second and admission.obj != mutation.output:
        mutation.changed()  # the server's own plugins have changed the object
    known = VERDICTS.get()
    for webhook in webhooks:
        if mutation.second and webhook.id not in mutation.again:
            continue
        call = webhook.call(admission, asked, backend)
        if call is None:
            continue
        if call.key not in known:
            raise VerdictsNeededError([call])
        verdict = known[call.key]
        webhook.apply(verdict, admission)
        changed = _patched(admission, webhook, call, verdict, asked, mutation, backend)
        if changed is not None and changed != admission.obj:
            admission = admission.of(changed)
            mutation.changed()
            mutation.wanted = True
        if webhook.again:
            mutation.called.add(webhook.id)
    mutation.output = admission.obj
    return admission.obj


def _patched(
    admission: Admission,
    webhook: Webhook,
    call: WebhookCall,
    verdict: Verdict,
    asked: Resource,
    mutation: Mutation,
    backend: Backend,
) -> JsonObject | None:
    """Return the object with the webhook's patch applied; None if the verdict has no patch.

    Raises StatusError if the patch cannot be applied, even if the failure policy is ``Ignore``.
    """
    if not verdict.patch or verdict.failed:
        return None
    if admission.obj is None:
        why = f'admission webhook "{webhook.name}" attempted to modify the object, which is not supported for this operation'
        raise status.internal_error(why)
    taken = webhook.taken(admission, asked, backend) or asked
    before = seen(admission, taken, admission.obj)
    try:
        patched = as_object(apply_json_patch(before, verdict.patch), "the patched object")
    except (JsonPatchError, ShapeError) as error:
        raise status.internal_error(f'admission webhook "{call.webhook}": {error}') from error
    return mutation.completed(taken.version.name, patched)
