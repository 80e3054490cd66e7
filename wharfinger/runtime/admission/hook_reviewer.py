"""The answers of packages' hooks to API servers: the hook that is chosen for a review, the time limit of the review, and the
effect of a failure.

A review runs the package's hook outside of the package's queue, and without a slot for hook runs. Otherwise a package that
applies an object would wait for its own webhook, which would wait in the package's queue; and a hook that changes an object
would wait for a review, which would wait for the slot that this hook holds. Reviews have slots of their own
(:mod:`~wharfinger.runtime.admission.review_slots`). A review releases its slot before its object patches are applied, because a
patch may need another review. A review may take 80 % of the time that the API server waits for it. If the hook gives no valid
answer in time, its failure policy decides, just as the API server would decide without an answer.

If the hook's package is being removed (and does not only move to another shard), the daemon admits a request without asking the
hook. An admission review that cannot be judged here (for example, the package is unknown or not loaded yet) gets an HTTP error,
so the API server applies the failure policy.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.hooks.config.bindings import AdmissionBinding, ConversionBinding
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.watching import contexts
from wharfinger.hooks.watching.context_file import Context
from wharfinger.hooks.webhooks.addresses import Address, ReviewKind
from wharfinger.hooks.webhooks.answers import read_admission_answer, read_conversion_answer
from wharfinger.hooks.webhooks.bound_webhooks import AdmissionWebhook, BoundWebhooks, Conversions, bound_webhooks
from wharfinger.hooks.webhooks.chains import find_chain, full_versions
from wharfinger.httpd.messages import Request, Response
from wharfinger.runtime.admission.hook_reviews import (
    ConversionRequest,
    admission_answer,
    admitted_without,
    batches,
    conversion_review,
    converted_answer,
    failed_admission,
    failed_conversion,
    read_admission_review,
    read_conversion_review,
)
from wharfinger.runtime.admission.review_slots import ReviewSlots
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.status.failures import EXPECTED
from wharfinger.runtime.tasks.event_tasks import hold_back
from wharfinger.runtime.tasks.hook_runs import Cause, review_by_hook, snapshots_of

log = logging.getLogger(__name__)

CONVERSION_S: Final = 30
"""The time that API servers wait for a conversion, in seconds."""
SHARE: Final = 0.8
"""The share of the API server's time limit after which the hook is stopped, so that the answer with the reason still arrives
in time.
"""
QUEUE: Final = "webhooks"
"""The name that metrics and logs show in place of a queue for reviews. Reviews do not wait in a queue."""
_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = 400
_UNAVAILABLE: Final = 503


class HookReviewer:
    """The part of the daemon that answers reviews of API servers by running the hooks of packages."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._slots = ReviewSlots()

    async def answer(self, address: Address, request: Request) -> Response:
        """Return the answer to a review that was sent to the address ``address``."""
        instance = self._runtime.instances.get(address.package)
        try:
            if address.kind is ReviewKind.CONVERSION:
                return await self._convert(instance, address, request)
            return await self._admit(instance, address, request)
        except FormatError as error:
            return _plain(_BAD_REQUEST, f"Invalid JSON payload: {error}")

    async def _admit(self, instance: Instance | None, address: Address, request: Request) -> Response:
        review = read_admission_review(request.body)
        uid = find_str(review, "request", "uid")
        runtime, package = self._runtime, address.package
        if runtime.lifecycle.is_removing(package) and not runtime.is_leaving(package):
            why = f"no hook has judged this: package {address.package} is being removed"
            return Response(200, admission_answer(admitted_without(uid, why)))
        if instance is None or (bound := _bound(instance)) is None:
            return _plain(_UNAVAILABLE, f"package {address.package} is not loaded; its hooks answer once it is loaded")
        webhook = bound.admission(address.kind, address.webhook)
        if webhook is None:
            return _plain(_NOT_FOUND, f"no hook found for '{address.package}' '{address.webhook}'")
        limit_s = SHARE * min(webhook.binding.timeout_s, _asked_timeout(request) or webhook.binding.timeout_s)
        response = await self._judged(instance, webhook, address.kind, review, limit_s)
        return Response(200, admission_answer(response))

    async def _judged(
        self, instance: Instance, webhook: AdmissionWebhook, kind: ReviewKind, review: JsonObject, limit_s: float
    ) -> JsonObject:
        hook, binding = webhook.hook, webhook.binding
        uid = find_str(review, "request", "uid")
        tell = contexts.mutating if kind is ReviewKind.MUTATING else contexts.validating
        why = f"hook {hook.name} did not answer within {limit_s:g} s"
        try:
            with trio.move_on_after(limit_s):
                context = tell(binding, review, _snapshots(instance, hook, binding))
                dry_run = find(review, "request", "dryRun") is True
                answers = await self._ran(instance, hook, context, binding.name, dry_run=dry_run)
                mutating = kind is ReviewKind.MUTATING
                return read_admission_answer(answers, hook=hook.name, mutating=mutating).response(uid)
        except EXPECTED as error:
            why = instance.masked(str(error))
        log.warning("%s: webhook %s: the API server gets no answer from the hook: %s", instance.id, binding.name, why)
        return failed_admission(uid, binding, why)

    async def _convert(self, instance: Instance | None, address: Address, request: Request) -> Response:
        asked = read_conversion_review(request.body)
        if instance is None or (bound := _bound(instance)) is None:
            why = f"package {address.package}, whose hooks convert {address.webhook}, is not loaded"
            return Response(200, failed_conversion(asked.uid, why))
        conversions = bound.conversions.get(address.webhook)
        if conversions is None:
            return Response(
                200, failed_conversion(asked.uid, f"no hook of {address.package} converts {address.webhook}")
            )
        limit_s = SHARE * min(CONVERSION_S, _asked_timeout(request) or CONVERSION_S)
        why = f"the hooks of {address.package} did not convert {address.webhook} within {limit_s:g} s"
        try:
            with trio.move_on_after(limit_s):
                return Response(200, converted_answer(asked.uid, await self._converted(instance, conversions, asked)))
        except EXPECTED as error:
            why = f"Conversion {address.webhook} to {asked.desired} was not successful: {instance.masked(str(error))}"
        log.warning("%s: %s", instance.id, why)
        return Response(200, failed_conversion(asked.uid, why))

    async def _converted(
        self, instance: Instance, conversions: Conversions, asked: ConversionRequest
    ) -> Sequence[JsonObject]:
        """Return all objects in the desired version, in the order of the request. Raises HookError, and the errors of a hook's
        run.
        """
        converted = list(asked.objects)
        for places in batches(asked.objects):
            objects = tuple(asked.objects[place] for place in places)
            source = find_str(objects[0], "apiVersion")
            chain = find_chain(conversions.pairs, source, asked.desired)
            if chain is None:
                any_hook = next(iter(conversions.pairs.values()))[0]
                raise HookError(any_hook.name, f"there is no chain of conversions from {source} to {asked.desired}")
            for pair, version in zip(chain, full_versions(chain, asked.desired), strict=True):
                hook, binding = conversions.pairs[pair]
                review = conversion_review(asked, objects)
                context = contexts.conversion(binding, pair, review, _snapshots(instance, hook, binding))
                answers = await self._ran(instance, hook, context, binding.name, dry_run=False)
                objects = read_conversion_answer(answers, hook=hook.name, objects=objects, to_version=version)
            for place, obj in zip(places, objects, strict=True):
                converted[place] = obj
        return converted

    async def _ran(
        self, instance: Instance, hook: Hook, context: Context, binding: str, *, dry_run: bool
    ) -> Mapping[str, bytes]:
        """Wait for a review slot, and run the hook; return its response files. Raises HookRunError, and the errors of
        applying the hook's output.
        """
        await hold_back(instance, hook)
        runtime, slot = self._runtime, self._slots.use(instance.id.name)
        cause = Cause(binding, QUEUE)
        return await review_by_hook(
            instance, runtime.tools, runtime.packages, hook, (context,), cause, slot=slot, dry_run=dry_run
        )


def _bound(instance: Instance) -> BoundWebhooks | None:
    """Return the webhooks of a package's loaded version; None if no version is loaded."""
    if instance.files.definition is None:
        return None
    return bound_webhooks(instance.files.hooks, instance.isolation)


def _snapshots(instance: Instance, hook: Hook, binding: AdmissionBinding | ConversionBinding) -> contexts.Snapshots:
    """Return the snapshots of a hook. Raises HookError if the binding includes snapshots but the package's hooks are stopped."""
    if binding.include_snapshots_from and instance.hooks.started is None:
        why = (
            "the hook needs snapshots, which are not available because the package's hooks are stopped; retry "
            "when the package is on"
        )
        raise HookError(hook.name, why, transient=True)
    return snapshots_of(instance, hook) if binding.include_snapshots_from else {}


def _asked_timeout(request: Request) -> float | None:
    """Return the timeout in seconds that the API server states (``?timeout=10s``); None if it states no valid timeout."""
    text = request.arg("timeout").removesuffix("s")
    return float(text) if text.isdecimal() and len(text) < len("100") and int(text) else None


def _plain(code: int, text: str) -> Response:
    return Response(code, f"{text}\n".encode(), "text/plain; charset=utf-8")
