"""The export of traces: when a daemon exports them, and when it does not."""

import argparse
import importlib.util
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from wharfinger.runtime.daemon.commands import add_run
from wharfinger.runtime.daemon.config import DaemonConfig
from wharfinger.runtime.daemon.traces import TraceOptions, open_traces, trace_options

VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
CONFIG = DaemonConfig(None, "", Path("/s"), Path("/s/socket"), Path("/helm"), 1)


@pytest.mark.parametrize(
    ("asked", "environment", "found"),
    [
        ("", {}, TraceOptions(wanted=False)),
        ("http://127.0.0.1:4318", {}, TraceOptions(wanted=True, endpoint="http://127.0.0.1:4318")),
        ("", {VARIABLE: "http://c:4318"}, TraceOptions(wanted=True)),
        ("", {VARIABLE: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, TraceOptions(wanted=False)),
    ],
)
def test_traces_are_exported_if_a_receiver_is_configured(
    asked: str, environment: dict[str, str], found: TraceOptions
) -> None:
    assert trace_options(asked, environment) == found


@pytest.mark.parametrize("asked", ["127.0.0.1:4318", "ftp://a", "http://", "http://[::1"])
def test_an_invalid_address_is_refused(asked: str) -> None:
    assert "--otlp-endpoint" in trace_options(asked, {}).problem


def test_a_login_in_the_address_is_refused() -> None:
    found = trace_options("https://me:hunter2@receiver.example:4318", {})
    assert not found.wanted
    assert "OTEL_EXPORTER_OTLP_HEADERS" in found.problem
    assert "hunter2" not in found.problem


def test_a_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert "pip install 'wharfinger[otel]'" in trace_options("http://a", {}).problem
    caplog.set_level(logging.WARNING, logger="wharfinger")
    assert trace_options("", {VARIABLE: "http://a"}) == TraceOptions(wanted=False)
    assert "no traces are exported" in caplog.text


def test_run_has_an_option_for_the_receiver() -> None:
    parser = argparse.ArgumentParser(prog="run")
    add_run(parser)
    assert parser.parse_args(["--otlp-endpoint", "http://127.0.0.1:4318"]).otlp_endpoint == "http://127.0.0.1:4318"


async def test_no_tracer_is_opened_by_default() -> None:
    async with open_traces(CONFIG) as tracer:
        assert tracer is None


async def test_a_tracer_is_opened_if_configured() -> None:
    async with open_traces(replace(CONFIG, traces=True, otlp_endpoint="http://127.0.0.1:1")) as tracer:
        assert tracer is not None
