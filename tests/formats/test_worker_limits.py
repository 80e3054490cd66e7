"""The limits of a worker process, as the kernel reports them afterwards."""

import json
import os
import resource
import subprocess
import sys

import pytest

from wharfinger.formats import worker_limits


def test_a_worker_process_gets_resource_limits() -> None:
    script = (
        "import json, os, resource; from wharfinger.formats.worker_limits import limit_process; limit_process();"
        "print(json.dumps([resource.getrlimit(x)[0] for x in (resource.RLIMIT_AS, resource.RLIMIT_CORE,"
        " resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)] + [dict(os.environ)]))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, timeout=300, check=True)
    assert json.loads(done.stdout) == [worker_limits.ADDRESS_SPACE_BYTES, 0, 0, worker_limits.OPEN_FILES, {}]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """Return the limits that are requested for this process. They are only recorded, because they could not be lifted again."""
    held: dict[int, tuple[int, int]] = {}
    infinity = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda limit: held.get(limit, (infinity, infinity)))
    monkeypatch.setattr(resource, "setrlimit", held.__setitem__)
    return held


def test_a_lower_existing_limit_is_not_raised(
    monkeypatch: pytest.MonkeyPatch, limits: dict[int, tuple[int, int]]
) -> None:
    monkeypatch.setattr(os, "environ", environment := {"TOKEN": "secret"})
    limits[resource.RLIMIT_NOFILE] = (8, 8)
    worker_limits.limit_process()
    assert limits[resource.RLIMIT_NOFILE] == (8, 8)
    assert limits[resource.RLIMIT_AS] == (worker_limits.ADDRESS_SPACE_BYTES, worker_limits.ADDRESS_SPACE_BYTES)
    assert environment == {}


def test_the_cpu_limit_of_a_request_counts_from_its_start(limits: dict[int, tuple[int, int]]) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    worker_limits.allow_cpu_time(5)
    soft, hard = limits[resource.RLIMIT_CPU]
    assert usage.ru_utime + usage.ru_stime + 5 <= soft
    assert hard == resource.RLIM_INFINITY
    limits[resource.RLIMIT_CPU] = (1, 1)
    worker_limits.allow_cpu_time(5)
    assert limits[resource.RLIMIT_CPU] == (1, 1)
