"""The metrics of warm hooks, from real pools."""

import sys
from dataclasses import replace
from pathlib import Path

from tests.pools.interpreters.warm import LIMITS, command_of, package, ready, until
from wharfinger.runtime.inspection.warm_metrics import WARM_METRICS, warm_families


async def test_starts_workers_and_claims_are_counted(tmp_path: Path) -> None:
    script = package(tmp_path / "package", "pass")
    first = command_of(script, tmp_path / "a")
    other = replace(command_of(script, tmp_path / "b"), env={**first.env, "PYTHONUTF8": "1"})
    async with ready(first, 2) as starts:
        assert (await starts.run(first, LIMITS)).ok
        assert (await starts.run(other, LIMITS)).ok
        await until(lambda: len(starts.pools()) == 2 and all(pool.snapshot().ready == 2 for pool in starts.pools()))
        families = list(warm_families(starts))
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
