"""The admission server: it answers API servers over HTTPS, renews its certificate, and writes the webhook's configuration.

A failure here does not stop the daemon: it is logged, and the work is retried. Only packages whose hooks are webhooks wait for
the certificate. A daemon on standby has no admission server, because it has no loaded packages. While no daemon is at work, API
servers admit resources without a judgement. If a judgement takes too long, the resource is admitted with a warning.

A new certificate is stored in the Secret first. Then the authorities of the new and of the old certificate are written into the
configuration. Last, the server uses the new certificate.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, NotFoundError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.webhooks.addresses import read_address
from wharfinger.httpd.messages import Answer, Request, Response
from wharfinger.httpd.server import HttpLimits, open_server
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.admission.certificates import (
    Certificate,
    ServedCertificate,
    new_certificate,
    read_certificate,
    secret_data,
)
from wharfinger.runtime.admission.endpoint import PATH, Endpoint, endpoint_slice, server_of, webhook_configuration
from wharfinger.runtime.admission.hook_reviewer import HookReviewer
from wharfinger.runtime.admission.hook_reviews import MAX_BODY_BYTES
from wharfinger.runtime.admission.hook_webhooks import HookWebhooks
from wharfinger.runtime.admission.judgement import Judge, Judgement
from wharfinger.runtime.admission.reviews import answer_to, read_review
from wharfinger.runtime.controllers.state_dir import StartError
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import SECRET

log = logging.getLogger(__name__)

SECRET_NAME: Final = "wharfinger-admission"  # noqa: S105 - a name
CHECK_S: Final = 3600.0
"""The interval at which the certificate and the configuration are checked."""
RETRY_S: Final = 10.0
SETTLE_S: Final = 10.0
"""The time, in seconds, after which all API servers are expected to use a changed webhook configuration and trust the CAs in
it.
"""
JUDGE_S: Final = 2.0
"""The time limit for one judgement, which is shorter than the time that API servers wait."""
LIMITS: Final = HttpLimits(
    body_bytes=MAX_BODY_BYTES, large_bodies_bytes=4 * MAX_BODY_BYTES, body_read_s=10, connections=64, idle_s=120
)
"""The limits on requests. Every pod of the cluster may connect, so all requests together must use far less memory than the
daemon has.
"""
_KEY: Final = ObjectKey(SECRET, SYSTEM_NAMESPACE, SECRET_NAME)


class AdmissionServer:
    """The server of one daemon. Made by :func:`open_admission`."""

    def __init__(
        self,
        client: ClusterClient,
        judge: Judge,
        endpoint: Endpoint,
        now: Callable[[], datetime],
        manager: str,
        webhooks: HookWebhooks | None = None,
    ) -> None:
        self._client = client
        self._judge = judge
        self._endpoint = endpoint
        self._now = now
        self._manager = manager
        self._webhooks = webhooks
        self._reviewer = HookReviewer(judge.runtime)
        self.certificate = ServedCertificate()
        self.port = 0
        self.ready = trio.Event()
        """An event that is set once the webhook configuration in the cluster names this server."""
        self.serving: Certificate | None = None

    async def handle(self, request: Request) -> Answer:
        """Answer a review of one of the daemon's own kinds, or a review for a package's hook."""
        address = read_address(request.path) if request.method == "POST" else None
        if address is not None:
            return await self._reviewer.answer(address, request)
        if request.path != PATH or request.method != "POST":
            return Response(404, f"expected a POST to {PATH}\n".encode(), "text/plain; charset=utf-8")
        try:
            review = read_review(request.body)
        except FormatError as error:
            return Response(400, f"{error}\n".encode(), "text/plain; charset=utf-8")
        judgement = Judgement(
            warnings=("wharfinger did not check this resource in time; the daemon checks it before acting on it",)
        )
        with trio.move_on_after(JUDGE_S):
            if review.deletes:
                judgement = self._judge.judge_removal(review.obj)
            else:
                judgement = await self._judge.judge(review.obj, review.old)
        return Response(200, answer_to(review, judgement.refusal, judgement.warnings))

    async def run(self) -> None:
        """Renew the certificate and correct the configuration, until cancelled."""
        said = ""
        while True:
            try:
                await self.keep()
            except (ClusterError, OSError) as error:  # ssl.SSLError is an OSError
                if str(error) != said:
                    log.warning("admission: %s; trying again every %.0f s", error, RETRY_S)
                said = str(error)
                await trio.sleep(RETRY_S)
                continue
            said = ""
            await trio.sleep(CHECK_S)

    async def keep(self) -> None:
        """Make sure that a valid certificate is served, and that API servers trust it and reach this server. Raises ClusterError.

        A certificate that replaces another one is served only when SETTLE_S have passed since the configuration was written,
        because API servers read the configuration with a delay.
        """
        certificate = await self._certificate()
        if (own := endpoint_slice(self._endpoint, self.port)) is not None:
            await self._client.apply(own, field_manager=self._manager, force=True)
        configuration = webhook_configuration(self._endpoint, self.port, certificate.bundle)
        await self._client.apply(configuration, field_manager=self._manager, force=True)
        if self._webhooks is not None:
            await self._webhooks.trust(server_of(self._endpoint, self.port, certificate.bundle))
        if certificate != self.serving:
            if self.serving is not None:
                await trio.sleep(SETTLE_S)
            await trio.to_thread.run_sync(self.certificate.use, certificate)
            self.serving = certificate
            log.info("admission: serving a certificate that is valid until %s", certificate.not_after.date())
        self.ready.set()

    async def _certificate(self) -> Certificate:
        """Return the stored certificate; make and store a new one if it is missing or unfit. Raises ClusterError."""
        try:
            secret: JsonObject | None = await self._client.get(_KEY)
        except NotFoundError:
            secret = None
        kept = read_certificate(secret) if secret is not None else None
        if kept is not None and kept.is_fit(self._endpoint.names, self._now()):
            return kept
        made = new_certificate(self._endpoint.names, self._now(), kept)
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": SECRET_NAME, "namespace": SYSTEM_NAMESPACE},
            "data": secret_data(made),
        }
        if secret is None:
            await self._client.create(body)
        else:
            await self._client.merge_patch(_KEY, {"data": secret_data(made)})
        return made


@asynccontextmanager
async def open_admission(
    client: ClusterClient,
    judge: Judge,
    endpoint: Endpoint,
    now: Callable[[], datetime],
    manager: str,
    webhooks: HookWebhooks | None = None,
) -> AsyncGenerator[AdmissionServer, None]:
    """Serve admission while the block runs. Raises StartError if the server cannot listen on the address.

    ``manager`` is the field manager of the configuration, and ``webhooks`` publishes the webhooks of packages' hooks.

    The configuration stays in the cluster when the block is left: API servers then fail to connect, and ignore the failure.
    """
    server = AdmissionServer(client, judge, endpoint, now, manager, webhooks)
    host = None if endpoint.service is not None and not endpoint.host else endpoint.host
    try:
        listeners = await trio.open_tcp_listeners(endpoint.port, host=host)
    except (OSError, UnicodeError) as error:
        raise StartError(
            f"--admission {endpoint.host}:{endpoint.port}: cannot listen: {error}; choose another address"
        ) from error
    server.port = listeners[0].socket.getsockname()[1]
    secure = [trio.SSLListener(listener, server.certificate.context, https_compatible=True) for listener in listeners]
    async with open_server(secure, server.handle, LIMITS), trio.open_nursery() as nursery:
        nursery.start_soon(server.run, name="admission")
        if webhooks is not None:
            nursery.start_soon(webhooks.run, lambda: frozenset(judge.runtime.instances), name="webhooks of hooks")
        log.info("admission: serving webhooks on port %d", server.port)
        yield server
        nursery.cancel_scope.cancel(reason="admission is not served any more")
