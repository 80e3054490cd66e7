"""The protocol of a tracer, and the span that a hook's run gets if there is no tracer. The tracer itself is in
:mod:`~wharfinger.runtime.tracing.otlp`.

A span has only names (of packages, tasks, hooks, bindings and queues), and whether the run failed. It has no message, because a
message may contain a secret.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Final, NamedTuple, Protocol, TypeAlias

from wharfinger.queue.tracing import Span

OPTION: Final = "--otlp-endpoint"
VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""The environment variables of OpenTelemetry that name the receiver."""
DISABLED: Final = "OTEL_SDK_DISABLED"


class HookNames(NamedTuple):
    """The names that describe one run of a hook: its package, the hook, the binding, and the queue in which it runs."""

    package: str
    hook: str
    binding: str
    queue: str


class RunSpan(Span, Protocol):
    """The span of a run of a hook."""

    def ended(self, *, succeeded: bool) -> None:
        """Record the end of the hook, and whether it succeeded; not called if the hook was not run."""
        ...


HookSpan: TypeAlias = AbstractContextManager[RunSpan]


class Tracer(Protocol):
    """The object that opens spans."""

    def task(self, package: str, task: str, cause: str) -> AbstractContextManager[Span]:
        """Open the span of a run of a task, which begins a trace."""
        ...

    def hook(self, names: HookNames, parent: Span | None) -> HookSpan:
        """Open the span of a run of a hook, within the span of its task if there is one."""
        ...


class NoSpan(NamedTuple):
    """The span if no traces are exported; it does nothing."""

    traceparent: str = ""

    def ended(self, *, succeeded: bool) -> None:
        """Do nothing."""


def hook_span(tracer: Tracer | None, names: HookNames, parent: Span | None) -> HookSpan:
    """Open the span of a run of a hook; without a tracer, the span does nothing."""
    return nullcontext(NoSpan()) if tracer is None else tracer.hook(names, parent)
