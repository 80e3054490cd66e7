"""Check that no span is made without a tracer, and that OpenTelemetry is not imported."""

import subprocess
import sys

from wharfinger.runtime.tracing.tracer import HookNames, hook_span

NAMES = HookNames("prod.app", "hooks/a.sh", "pods", "main")


def test_a_hook_without_a_tracer_has_no_span() -> None:
    with hook_span(None, NAMES, None) as span:
        assert span.traceparent == ""
        span.ended(succeeded=False)


def test_a_daemon_without_traces_does_not_import_opentelemetry() -> None:
    program = (
        "import sys, wharfinger.runtime.daemon.daemon, wharfinger.runtime.daemon.commands\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
