"""The traces of a daemon: whether they are exported, and to which receiver."""

import argparse
import importlib.util
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from wharfinger.runtime.daemon.config import DaemonConfig
from wharfinger.runtime.tracing.tracer import DISABLED, OPTION, VARIABLES, Tracer

log = logging.getLogger(__name__)

_EXTRA: Final = "opentelemetry.exporter.otlp.proto.http"
_REMEDY: Final = "pip install 'wharfinger[otel]'"


class TraceOptions(NamedTuple):
    """The decision whether to export traces, the receiver's address ("" if environment variables name it), and the problem
    with the option ("" if there is none).
    """

    wanted: bool
    endpoint: str = ""
    problem: str = ""


def add_traces(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the receiver of traces."""
    parser.add_argument(
        OPTION,
        default="",
        metavar="URL",
        help="export a trace of each task and each hook run to this OpenTelemetry receiver (OTLP over HTTP), such as "
        f"http://127.0.0.1:4318; needs the extra [otel] (default: the receiver that ${VARIABLES[1]} names, else no traces)",
    )


def trace_options(asked: str, environment: Mapping[str, str]) -> TraceOptions:
    """Return the options of traces, from the command line and from OpenTelemetry's environment variables."""
    if asked:
        parts = _parts(asked)
        if (
            "@" in parts.netloc
        ):  # a login in the address would get into the log, and every user of the machine could see it in the command line
            return TraceOptions(
                wanted=False,
                problem=f"{OPTION}: the address must not contain a login; use OTEL_EXPORTER_OTLP_HEADERS for it",
            )
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            return TraceOptions(
                wanted=False, problem=f"{OPTION} {asked[:100]!r}: expected http://HOST:PORT or https://HOST:PORT"
            )
        if not _is_installed():
            return TraceOptions(
                wanted=False, problem=f"{OPTION} needs OpenTelemetry, which is not installed; {_REMEDY}"
            )
        return TraceOptions(wanted=True, endpoint=asked)
    if environment.get(DISABLED, "").lower() == "true" or not any(environment.get(name) for name in VARIABLES):
        return TraceOptions(wanted=False)
    if not _is_installed():
        log.warning(
            "%s is set, but OpenTelemetry is not installed, so no traces are exported; %s", VARIABLES[1], _REMEDY
        )
        return TraceOptions(wanted=False)
    return TraceOptions(wanted=True)


def _parts(address: str) -> SplitResult:
    """Return the parts of an address; empty parts if the text is not an address."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec(_EXTRA) is not None
    except ImportError:
        return False


@asynccontextmanager
async def open_traces(config: DaemonConfig) -> AsyncIterator[Tracer | None]:
    """Export traces while the body runs. If no traces are wanted, yield None, without importing OpenTelemetry."""
    if not config.traces:
        yield None
        return
    from wharfinger.runtime.tracing.otlp import open_tracer  # noqa: PLC0415 - an extra has its library

    async with open_tracer(config.otlp_endpoint) as tracer:
        log.info("traces are exported to %s", config.otlp_endpoint or "the receiver that the environment names")
        yield tracer
