"""Exported traces: the tests receive them over HTTP on loopback, and decode them as a collector does."""

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from tests.runtime.support.world import open_ground
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger.httpd.messages import Request, Response
from wharfinger.httpd.server import HttpLimits, open_server
from wharfinger.queue.lane import current_span
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.queue.task import TaskFailed
from wharfinger.runtime.tracing.otlp import MAX_SPANS, open_tracer
from wharfinger.runtime.tracing.tracer import HookNames, hook_span

LIMITS = HttpLimits(
    header_bytes=16_384, body_bytes=10_000_000, idle_s=30, header_read_s=5, body_read_s=5, write_s=5, connections=4
)
SECRET = "hunter2-in-a-trace"


@dataclass
class Receiver:
    """An HTTP server that keeps the traces that are sent to it."""

    address: str
    status: int = 200
    spans: list[WireSpan] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    resource: dict[str, str] = field(default_factory=dict)

    async def handle(self, request: Request) -> Response:
        if (request.method, request.path) != ("POST", "/v1/traces"):
            return Response(404)
        self.bodies.append(request.body)
        for found in ExportTraceServiceRequest.FromString(request.body).resource_spans:
            self.resource |= {each.key: each.value.string_value for each in found.resource.attributes}
            self.spans += [span for scope in found.scope_spans for span in scope.spans]
        return Response(self.status, b"", "application/x-protobuf")

    def of(self, name: str) -> WireSpan:
        (found,) = (span for span in self.spans if span.name == name)
        return found


@asynccontextmanager
async def open_receiver() -> AsyncIterator[Receiver]:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    receiver = Receiver(f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}")
    async with open_server(listeners, receiver.handle, LIMITS):
        yield receiver


def attributes(span: WireSpan) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


@dataclass
class Work:
    """A task that runs a hook, and may fail."""

    name: str
    fails: bool = False
    seen: list[str] = field(default_factory=list)
    tracer: object = None

    async def execute(self) -> None:
        span = current_span()
        assert span is not None
        self.seen.append(span.traceparent)
        if self.fails:
            raise TaskFailed(f"it says {SECRET}", permanent=True)


async def test_a_task_and_its_hook_are_one_trace() -> None:
    seen: list[str] = []
    async with open_receiver() as receiver:
        async with open_tracer(receiver.address + "/") as tracer, open_queues(trace=tracer.task) as queues:

            class Hooks:
                name = "Run hooks"

                async def execute(self) -> None:
                    names = HookNames("prod.app", "hooks/a.sh", "pods", "main")
                    for succeeded in (True, False):
                        with hook_span(tracer, names._replace(hook=f"hooks/{succeeded}.sh"), current_span()) as span:
                            seen.append(span.traceparent)
                            span.ended(succeeded=succeeded)

            failing = Work("Fails", fails=True)
            queues.enqueue("prod.app", Hooks(), WorkScope("update of prod.app"))
            queues.enqueue("prod.bad", failing, WorkScope("update of prod.bad"))
            await queues.wait_idle("prod.app")
            await queues.wait_idle("prod.bad")
        task, good, bad = (
            receiver.of("Run hooks"),
            receiver.of("hook hooks/True.sh"),
            receiver.of("hook hooks/False.sh"),
        )
        assert attributes(task) == {
            "wharfinger.package": "prod.app",
            "wharfinger.task": "Run hooks",
            "wharfinger.cause": "update of prod.app",
        }
        assert task.parent_span_id == b""
        assert {good.parent_span_id, bad.parent_span_id} == {task.span_id}
        assert {good.trace_id, bad.trace_id} == {task.trace_id}
        assert seen[0].startswith(f"00-{good.trace_id.hex()}-{good.span_id.hex()}-0")
        assert (task.status.code, good.status.code, bad.status.code) == (0, 0, 2)
        assert attributes(good)["wharfinger.binding"] == "pods"
        failed = receiver.of("Fails")
        assert (failed.status.code, failed.status.message) == (2, "TaskFailed")
        assert failed.trace_id != task.trace_id
        assert receiver.resource["service.name"] == "wharfinger"
        assert SECRET.encode() not in b"".join(receiver.bodies)


async def test_the_environment_names_the_receiver_and_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "harbour")
        async with open_tracer("") as tracer:
            with tracer.task("a", "b", "c"):
                pass
        assert receiver.of("b").name == "b"
        assert receiver.resource["service.name"] == "harbour"


async def test_a_refusing_receiver_is_reported_once_and_spans_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger")
    async with open_receiver() as receiver:
        receiver.status = 400
        async with open_tracer(receiver.address) as tracer:
            for _ in range(MAX_SPANS + 10):
                with tracer.task("a", "b", "c"):
                    pass
        assert len(receiver.spans) == MAX_SPANS
    (told,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told.startswith(
        "traces cannot be exported: the receiver refuses the spans, or cannot be reached; 512 spans are lost"
    )


@pytest.mark.slow
async def test_a_hook_gets_the_span_of_its_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger")
    hook = bash("configVersion: v1\nonStartup: 1", 'echo "traceparent=$TRACEPARENT"\n')
    async with open_receiver() as receiver:
        async with (
            open_tracer(receiver.address) as tracer,
            open_ground(tmp_path) as ground,
            replace(ground, tracer=tracer).open_world() as world,
        ):
            await world.repository()
            await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
            await world.create("prod", "app", package="hooked")
            await world.until_state("prod", "app", "Ready")
        (said,) = {found for record in caplog.records for found in re.findall("traceparent=(.*)", record.getMessage())}
        span = receiver.of("hook hooks/a.sh")
        assert said.startswith(f"00-{span.trace_id.hex()}-{span.span_id.hex()}-0")
        assert attributes(span)["wharfinger.package"] == "prod.app"
        assert span.parent_span_id in {each.span_id for each in receiver.spans}
