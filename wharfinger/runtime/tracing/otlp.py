"""Traces by OpenTelemetry's SDK, exported by its OTLP exporter over HTTP. Only a daemon that exports traces loads this module.

The SDK's batch processor, which has its own thread and timer, is not used. In its place, a trio task exports: ended spans are
kept in a bounded queue, and each batch is sent by one call of the exporter in a worker thread. So the daemon controls all
threads, and its stop waits at most FLUSH_S for the last spans. While the receiver is unavailable, one warning is logged, and
spans are lost: those in failed batches, and those that do not fit into the queue. The daemon's work is never delayed.

OpenTelemetry's environment variables (``OTEL_…``) set the headers, the certificates, the sampler and the resource attributes.
They also name the receiver, unless the option ``--otlp-endpoint`` names it.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import trio
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace.status import Status, StatusCode

import wharfinger
from wharfinger.queue.tracing import Span
from wharfinger.runtime.tracing.tracer import HookNames, RunSpan

log = logging.getLogger(__name__)
EXPORTER: Final = "opentelemetry.exporter"
"""The logger of the exporters. It is silenced, because exporters log each attempt to send a batch, with the receiver's answer.
"""

MAX_SPANS: Final = 2048
"""The limit on the number of ended spans that wait for an export; further spans are dropped."""
BATCH: Final = 512
EVERY_S: Final = 5.0
FLUSH_S: Final = 5.0
MAX_TEXT: Final = 256
_PATH: Final = "/v1/traces"


@dataclass(frozen=True, slots=True)
class _Span:
    """A span that has begun and not ended yet."""

    span: trace.Span

    @property
    def traceparent(self) -> str:
        found = self.span.get_span_context()
        return f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"

    def ended(self, *, succeeded: bool) -> None:
        """Mark the span as failed if the hook failed."""
        if not succeeded:
            self.span.set_status(Status(StatusCode.ERROR, "the hook failed"))


class SpanQueue(SpanProcessor):
    """The queue of ended spans that wait for an export."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._ended: deque[ReadableSpan] = deque()
        self._fails = False
        self.dropped = 0

    def on_end(self, span: ReadableSpan) -> None:
        """Keep an ended span, if its trace is sampled and the queue is not full."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        if len(self._ended) >= MAX_SPANS:
            self.dropped += 1
        else:
            self._ended.append(span)

    async def run(self) -> None:
        """Export ended spans periodically, until cancelled."""
        while True:
            await trio.sleep(EVERY_S)
            await self.flush()

    async def flush(self) -> None:
        """Export all spans that have ended by now. A batch that cannot be sent is lost."""
        limiter = trio.CapacityLimiter(1)
        for _ in range(-(-len(self._ended) // BATCH)):
            batch = [self._ended.popleft() for _ in range(min(BATCH, len(self._ended)))]
            try:
                result = await trio.to_thread.run_sync(
                    self._exporter.export, batch, abandon_on_cancel=True, limiter=limiter
                )
            except Exception as error:  # noqa: BLE001 - traces must never fail the daemon
                result, why = SpanExportResult.FAILURE, type(error).__name__
            else:
                why = "the receiver refuses the spans, or cannot be reached"
            self._report(result is not SpanExportResult.SUCCESS, len(batch), why)

    def _report(self, fails: bool, count: int, why: str) -> None:  # noqa: FBT001 - one bit
        if fails and not self._fails:
            log.warning(
                "traces cannot be exported: %s; %d spans are lost; later spans are lost, too, until an export succeeds",
                why,
                count,
            )
        elif self._fails and not fails:
            log.info("traces are exported again; since the start, %d spans did not fit into the queue", self.dropped)
        self._fails = fails


class OtlpTracer:
    """The tracer that makes spans with OpenTelemetry's SDK; see `open_tracer`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("wharfinger", wharfinger.__version__)

    @contextmanager
    def task(self, package: str, task: str, cause: str) -> Iterator[Span]:
        """Open the span of a run of a task, which begins a trace."""
        names = {"wharfinger.package": package, "wharfinger.task": task, "wharfinger.cause": cause}
        with self._open(task, names, Context()) as span:
            yield span

    @contextmanager
    def hook(self, names: HookNames, parent: Span | None) -> Iterator[RunSpan]:
        """Open the span of a run of a hook, within the span of its task if there is one."""
        within = trace.set_span_in_context(parent.span, Context()) if isinstance(parent, _Span) else Context()
        about = {f"wharfinger.{key}": value for key, value in names._asdict().items() if value}
        with self._open(f"hook {names.hook}", about, within) as span:
            yield span

    @contextmanager
    def _open(self, name: str, attributes: Mapping[str, str], context: Context) -> Iterator[_Span]:
        span = self._tracer.start_span(
            name[:MAX_TEXT],
            context=context,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        )
        try:
            yield _Span(span)
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            span.end()


@asynccontextmanager
async def open_tracer(endpoint: str) -> AsyncIterator[OtlpTracer]:
    """Export traces while the body runs; ``endpoint`` is the receiver's address, or "" if environment variables name it."""
    logging.getLogger(EXPORTER).setLevel(logging.CRITICAL + 1)
    exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + _PATH if endpoint else None)
    queue = SpanQueue(exporter)
    resource = Resource({SERVICE_NAME: "wharfinger", SERVICE_VERSION: wharfinger.__version__}).merge(Resource.create())
    provider = TracerProvider(
        resource=_named(resource), span_limits=SpanLimits(max_span_attribute_length=MAX_TEXT), shutdown_on_exit=False
    )
    provider.add_span_processor(queue)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run, name="export of traces")
        try:
            yield OtlpTracer(provider)
        finally:
            nursery.cancel_scope.cancel()
            with trio.move_on_after(FLUSH_S, shield=True):
                await queue.flush()
            exporter.shutdown()  # type: ignore[no-untyped-call]  # the library has no types here


def _named(resource: Resource) -> Resource:
    """Return the resource with the service name ``wharfinger``, unless environment variables set the name."""
    found = str(resource.attributes.get(SERVICE_NAME, ""))
    return resource.merge(Resource({SERVICE_NAME: "wharfinger"})) if found.startswith("unknown_service") else resource
