"""The metrics of warm hooks: starts, workers and claims of real pools are counted."""

import sys
from dataclasses import replace
from pathlib import Path

from tests.pools.interpreters.warm import GIB, LIMITS, command_of, package, ready, until
from tests.pools.persistent.programs import run_of, serving
from wharfinger.pools.persistent.programs import open_persistent_programs
from wharfinger.runtime.inspection.warm_metrics import WARM_METRICS, warm_families


async def test_starts_workers_and_claims_are_counted(tmp_path: Path) -> None:
    script = package(tmp_path / "package", "pass")
    first = command_of(script, tmp_path / "a")
    other = replace(command_of(script, tmp_path / "b"), env={**first.env, "PYTHONUTF8": "1"})
    async with ready(first, 2) as starts, open_persistent_programs(None, starts.budget) as programs:
        assert (await programs.run(run_of(serving(tmp_path)), LIMITS)).ok
        assert (await starts.run(first, LIMITS)).ok
        assert (await starts.run(other, LIMITS)).ok
        await until(lambda: len(starts.pools()) == 2 and all(pool.snapshot().ready == 2 for pool in starts.pools()))
        families = list(warm_families(starts, programs))
    assert tuple(described for described, _ in families) == WARM_METRICS
    found = {described.name: dict(rows) for described, rows in families}
    assert found["wharfinger_warm_starts_total"] == {("warm",): 1, ("cold",): 2}
    name, second = sys.executable, f"{sys.executable} #2"
    assert found["wharfinger_warm_workers"] == {
        (name, "ready"): 2,
        (name, "reserved"): 0,
        (second, "ready"): 2,
        (second, "reserved"): 0,
    }
    assert found["wharfinger_warm_claims_total"][name, "success"] == 1
    assert found["wharfinger_warm_claims_total"][second, "success"] == 0
    assert found["wharfinger_warm_waiting"] == {(name,): 0, (second,): 0}
    assert 0 < found["wharfinger_warm_claim_seconds_total"][name,] < 20
    assert found["wharfinger_warm_dispatch_seconds_total"][second,] == 0
    assert found["wharfinger_warm_zygote_restarts_total"] == {(name,): 0, (second,): 0}
    assert found["wharfinger_warm_memory_bytes"][("limit",)] == GIB
    assert found["wharfinger_warm_memory_bytes"][("used",)] > 0
    assert found["wharfinger_warm_memory_refused_total"] == {(): 0}
    assert found["wharfinger_warm_memory_ended_total"] == {(): 0}
    assert found["wharfinger_warm_persistent_processes"] == {(): 1}
    assert found["wharfinger_warm_persistent_runs_total"] == {("kept",): 1, ("new",): 0}
    assert found["wharfinger_warm_persistent_starts_total"] == {(): 1}
    assert found["wharfinger_warm_persistent_broken_total"] == {(): 0}
