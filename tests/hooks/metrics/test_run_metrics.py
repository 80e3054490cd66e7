"""Metrics of hook runs."""

import pytest

from tests.exposition import Family, parse
from wharfinger.formats.exposition import exposition
from wharfinger.hooks.metrics.run_metrics import (
    LABELS,
    MAX_PACKAGE_ROWS,
    MAX_ROWS,
    OTHERS,
    RUN_METRICS,
    HookRunSample,
    RunMetrics,
    RunOutcome,
    package_labels,
)

PREFIX = "wharfinger_hook_run_"
SAMPLE = HookRunSample("prod.shop", "a.sh", "pods", "main", RunOutcome.SUCCESS, 0.3, 0.06, 0.01, 4096)


def scraped(runs: RunMetrics) -> dict[str, Family]:
    return parse(exposition(runs.lines()))


def test_no_metrics_are_published_before_the_first_run() -> None:
    assert scraped(RunMetrics()) == {}


def test_runs_are_counted_by_outcome() -> None:
    runs = RunMetrics()
    runs.ran(SAMPLE)
    runs.ran(HookRunSample("prod.shop", "a.sh", "pods", "main", RunOutcome.SUCCESS, 3.0, 0.5, 0.5, 2048))
    runs.ran(HookRunSample("prod.shop", "a.sh", "pods", "main", RunOutcome.ERROR, 9.0, 7.0, 7.0, 999_999))
    runs.ran(HookRunSample("prod.shop", "a.sh", "pods", "main", RunOutcome.ALLOWED_ERROR, 9.0))
    runs.ran(HookRunSample("ingress", "b.sh", "nightly", "q", RunOutcome.ERROR, 1.0))
    found = scraped(runs)
    assert list(found) == [each.name for each in RUN_METRICS]
    for described in RUN_METRICS:
        family = found[described.name]
        assert (family.kind, family.help) == (described.kind, described.help)
        labels = {name for _, pairs in family.samples for name, _ in pairs} - {"le"}
        assert labels == set(LABELS)
    ours = {"module": "shop", "namespace": "prod", "hook": "a.sh", "binding": "pods", "queue": "main"}
    key = tuple(sorted(ours.items()))
    assert found[f"{PREFIX}seconds"].samples[f"{PREFIX}seconds_sum", key] == pytest.approx(21.3)
    assert found[f"{PREFIX}seconds"].samples[f"{PREFIX}seconds_count", key] == 4
    at_half = tuple(sorted((*key, ("le", "0.5"))))
    assert found[f"{PREFIX}seconds"].samples[f"{PREFIX}seconds_bucket", at_half] == 1
    assert found[f"{PREFIX}user_cpu_seconds"].samples[f"{PREFIX}user_cpu_seconds_sum", key] == pytest.approx(0.56)
    assert found[f"{PREFIX}sys_cpu_seconds"].samples[f"{PREFIX}sys_cpu_seconds_count", key] == 2
    assert found[f"{PREFIX}max_rss_bytes"].value(**ours) == 2048, "the value of the last successful run"
    assert len(found[f"{PREFIX}max_rss_bytes"].samples) == 1, "b.sh never succeeded"
    assert found[f"{PREFIX}errors_total"].value(**ours) == 1
    assert found[f"{PREFIX}allowed_errors_total"].value(**ours) == 1
    assert found[f"{PREFIX}success_total"].value(**ours) == 2
    theirs = {"module": "ingress", "hook": "b.sh", "binding": "nightly", "queue": "q"}
    assert found[f"{PREFIX}errors_total"].value(**theirs) == 1
    assert found[f"{PREFIX}success_total"].value(**theirs) == 0


def test_forgotten_package_is_no_longer_counted() -> None:
    runs = RunMetrics()
    runs.ran(SAMPLE)
    runs.ran(HookRunSample("ingress", "b.sh", "nightly", "q", RunOutcome.ERROR, 1.0))
    runs.forget("prod.shop")
    runs.forget("prod.shop")
    runs.forget("never")
    (left,) = scraped(runs)[f"{PREFIX}errors_total"].samples
    assert ("module", "ingress") in left[1]
    runs.ran(SAMPLE)
    assert len(scraped(runs)[f"{PREFIX}success_total"].samples) == 2


def successes(runs: RunMetrics) -> Family:
    """Return the family of successful runs, without parsing the other families."""
    lines = [line for line in runs.lines() if "success_total" in line]
    return parse(exposition(lines))[f"{PREFIX}success_total"]


def test_rows_are_limited_and_sums_stay_correct() -> None:
    runs = RunMetrics()
    for number in range(MAX_PACKAGE_ROWS + 5):
        runs.ran(HookRunSample("greedy", "a.sh", f"b{number}", "main", RunOutcome.SUCCESS, 1.0))
    assert len(successes(runs).samples) == MAX_PACKAGE_ROWS + 1
    assert successes(runs).value(hook=OTHERS) == 5
    for number in range(MAX_ROWS):
        runs.ran(HookRunSample(f"p{number}", "a.sh", "b", "main", RunOutcome.SUCCESS, 1.0))
    assert len(successes(runs).samples) == MAX_ROWS
    assert sum(successes(runs).samples.values()) == MAX_PACKAGE_ROWS + 5 + MAX_ROWS
    runs.ran(HookRunSample("p0", "a.sh", "b", "main", RunOutcome.SUCCESS, 1.0))
    assert successes(runs).value(module="p0", hook="a.sh", binding="b", queue="main") == 2
    runs.forget("greedy")
    runs.ran(HookRunSample("late", "a.sh", "b", "main", RunOutcome.SUCCESS, 1.0))
    assert successes(runs).value(module="late", hook="a.sh", binding="b", queue="main") == 1


def test_runtime_names_give_package_and_namespace_labels() -> None:
    assert package_labels("prod.shop") == ("shop", "prod")
    assert package_labels("prod.shop.eu") == ("shop.eu", "prod")
    assert package_labels("ingress") == ("ingress", "")
