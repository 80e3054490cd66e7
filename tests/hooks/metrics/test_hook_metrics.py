"""Published metrics of hooks: groups, labels, lifetimes, warnings, and hostile files."""

import json
import random
from typing import Final

import pytest

from tests.exposition import Family, parse
from tests.scale import scaled
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.metrics.hook_metrics import HOOK_METRICS, MAX_WARNINGS, HookMetrics
from wharfinger.hooks.metrics.operations import MAX_BUCKETS, MetricOperation, read_metric_operations
from wharfinger.hooks.metrics.run_metrics import HookRunSample, RunOutcome
from wharfinger.hooks.metrics.store import MetricLimits
from wharfinger.hooks.running.results import METRICS, read_metrics


def operations(*documents: object, hook: str = "h") -> tuple[MetricOperation, ...]:
    """Return the operations that are read from a metrics file with these documents."""
    data = "\n".join(json.dumps(document) for document in documents).encode()
    return read_metric_operations(read_metrics(data, hook=hook), hook=hook)


def scraped(metrics: HookMetrics) -> dict[str, Family]:
    return parse(metrics.exposition_hooks())


def ran(metrics: HookMetrics, *documents: object, package: str = "ingress", hook: str = "a.sh") -> tuple[str, ...]:
    """Apply the operations of a hook's run, and return the warnings."""
    return metrics.apply(package, hook, operations(*documents))


def test_metrics_of_the_contract_example_are_published() -> None:
    metrics = HookMetrics()
    assert (
        ran(
            metrics,
            {"name": "hook_metric", "action": "set", "value": 33, "labels": {"kind": "pod"}},
            {"name": "runs_total", "action": "add", "value": 1, "labels": {}},
            {"name": "dur", "action": "observe", "value": 0.3, "buckets": [0.1, 0.5, 1], "labels": {}},
            {"group": "g1", "action": "expire"},
            {"group": "g1", "name": "items", "action": "set", "value": 2, "labels": {"ns": "a"}},
        )
        == ()
    )
    assert metrics.exposition_hooks() == (
        "# TYPE dur histogram\n"
        'dur_bucket{hook="a.sh",module="ingress",le="0.1"} 0\n'
        'dur_bucket{hook="a.sh",module="ingress",le="0.5"} 1\n'
        'dur_bucket{hook="a.sh",module="ingress",le="1"} 1\n'
        'dur_bucket{hook="a.sh",module="ingress",le="+Inf"} 1\n'
        'dur_sum{hook="a.sh",module="ingress"} 0.3\n'
        'dur_count{hook="a.sh",module="ingress"} 1\n'
        "# TYPE hook_metric gauge\n"
        'hook_metric{hook="a.sh",kind="pod",module="ingress"} 33\n'
        "# TYPE items gauge\n"
        'items{hook="a.sh",module="ingress",ns="a"} 2\n'
        "# TYPE runs_total counter\n"
        'runs_total{hook="a.sh",module="ingress"} 1\n'
    )


@pytest.mark.parametrize(
    ("package", "labels"),
    [
        ("ingress", {"hook": "a.sh", "module": "ingress"}),
        ("prod.shop", {"hook": "a.sh", "module": "shop", "namespace": "prod"}),
        ("global", {"hook": "a.sh", "namespace": "x"}),
    ],
)
def test_identity_labels_of_a_hook_cannot_be_overridden(package: str, labels: dict[str, str]) -> None:
    metrics = HookMetrics()
    own = {"hook": "other.sh", "namespace": "x"}
    ran(metrics, {"name": "a", "set": 1, "labels": own}, package=package)
    wanted = {**({"namespace": "x"} if package != "prod.shop" else {}), **labels}
    assert scraped(metrics)["a"].value(**wanted) == 1


def test_new_batch_replaces_the_metrics_of_its_group() -> None:
    metrics = HookMetrics()
    ran(metrics, {"name": "a", "set": 1, "labels": {"n": "1"}, "group": "g"}, {"name": "b", "set": 1, "group": "g"})
    ran(metrics, {"name": "a", "set": 2, "labels": {"n": "2"}, "group": "h"})
    ran(metrics, {"name": "a", "set": 3, "labels": {"n": "3"}, "group": "g"}, {"name": "a", "set": 4, "group": "g"})
    found = scraped(metrics)
    assert set(found) == {"a"}
    assert sorted(found["a"].samples.values()) == [2, 3, 4]


def test_counters_of_a_group_restart_with_each_batch() -> None:
    metrics = HookMetrics()
    for _ in range(2):
        ran(metrics, *([{"name": "found_total", "add": 1, "group": "g"}] * 3))
        assert scraped(metrics)["found_total"].value(hook="a.sh", module="ingress") == 3


def test_ungrouped_metrics_last_until_the_next_ungrouped_batch() -> None:
    metrics = HookMetrics()
    ran(metrics, {"name": "a", "set": 1}, {"name": "b", "set": 1}, {"name": "c", "set": 1, "group": "g"})
    ran(metrics, {"name": "a", "set": 9}, hook="b.sh")
    ran(metrics)
    ran(metrics, {"group": "g", "action": "expire"})
    assert set(scraped(metrics)) == {"a", "b"}, "runs without ungrouped metrics leave them unchanged"
    ran(metrics, {"name": "b", "set": 2})
    found = scraped(metrics)
    assert set(found) == {"a", "b"}
    assert list(found["a"].samples.values()) == [9], "b.sh is another hook"
    ran(metrics, {"action": "expire"})
    assert set(scraped(metrics)) == {"a"}


def test_default_group_is_named_after_the_hook() -> None:
    metrics = HookMetrics()
    ran(metrics, {"name": "a", "set": 1})
    ran(metrics, {"group": "a.sh", "action": "expire"}, hook="b.sh")
    assert scraped(metrics) == {}


def test_groups_of_different_packages_are_separate() -> None:
    metrics = HookMetrics()
    ran(metrics, {"name": "a", "set": 1, "group": "g"})
    ran(metrics, {"group": "g", "action": "expire"}, package="prod.shop")
    ran(metrics, {"name": "a", "set": 1, "group": "g"}, package="prod.shop", hook="c.sh")
    assert len(scraped(metrics)["a"].samples) == 2
    ran(metrics, {"group": "g", "action": "expire"}, hook="b.sh")
    assert len(scraped(metrics)["a"].samples) == 1, "the hooks of one package share its groups"


def test_expire_inside_a_batch_removes_only_earlier_operations() -> None:
    metrics = HookMetrics()
    ran(
        metrics,
        {"group": "g", "name": "a", "set": 1},
        {"group": "g", "action": "expire"},
        {"group": "g", "name": "b", "set": 1},
    )
    assert set(scraped(metrics)) == {"b"}


def test_metric_kind_may_change_only_between_batches() -> None:
    metrics = HookMetrics()
    ran(metrics, {"name": "a", "set": 1})
    assert ran(metrics, {"name": "a", "add": 5}, {"name": "a", "set": 1}) == (
        "a: it is a counter and cannot become a gauge while it is published",
    )
    assert (scraped(metrics)["a"].kind, scraped(metrics)["a"].value(hook="a.sh", module="ingress")) == ("counter", 5)
    assert ran(metrics, {"name": "a", "set": 1}, package="prod.shop") == (
        "a: it is a counter and cannot become a gauge while it is published",
    )


def test_warnings_are_limited_and_contain_no_label_values() -> None:
    metrics = HookMetrics()
    many = [{"name": f"bad-{number}", "set": 1} for number in range(100)]
    warnings = ran(metrics, *many)
    assert len(warnings) == MAX_WARNINGS
    assert (
        warnings[0] == "'bad-0' is not a name of a metric; use letters, digits, _ and :, and no digit at the beginning"
    )
    assert warnings[-1] == "and 81 more like these"
    assert len(ran(metrics, *([{"name": "bad-0", "set": 1, "labels": {"a": "hunter2"}}] * 100))) == 1
    told = ran(metrics, {"name": "a", "action": "count"}, {"name": "a", "set": 1, "labels": {"__a": "hunter2"}})
    assert len(told) == 2
    assert "unknown action 'count'" in told[0]
    assert "hunter2" not in "".join(told)
    assert scraped(metrics) == {}


def test_secrets_in_labels_are_masked() -> None:
    metrics = HookMetrics()
    found = operations({"name": "a", "set": 1, "labels": {"password": "it is hunter2", "user": "app"}})
    metrics.apply("ingress", "a.sh", found, masked=lambda text: text.replace("hunter2", "***"))
    assert scraped(metrics)["a"].value(hook="a.sh", module="ingress", password="it is ***", user="app") == 1


def test_hook_name_that_is_not_utf_8_is_escaped() -> None:
    metrics = HookMetrics()
    for hook in ("\udcff.sh", "\udcfe.sh"):
        ran(metrics, {"name": "a", "set": 1}, hook=hook)
        metrics.ran(HookRunSample("ingress", hook, "b", "main", RunOutcome.SUCCESS, 1.0))
    assert scraped(metrics)["a"].value(hook="\\udcff.sh", module="ingress") == 1
    assert len(parse(metrics.exposition())["wharfinger_hook_run_success_total"].samples) == 2


def test_forgotten_package_loses_all_its_metrics() -> None:
    metrics = HookMetrics()
    for package in ("ingress", "prod.shop"):
        ran(metrics, {"name": "a", "set": 1}, {"name": "b", "set": 1, "group": "g"}, package=package)
        metrics.ran(HookRunSample(package, "a.sh", "b", "main", RunOutcome.SUCCESS, 1.0))
    metrics.forget("ingress")
    assert [len(family.samples) for family in scraped(metrics).values()] == [1, 1]
    assert len(parse(metrics.exposition())["wharfinger_hook_run_success_total"].samples) == 1
    metrics.forget("prod.shop")
    assert scraped(metrics) == {}


def test_own_metrics_match_their_descriptions() -> None:
    metrics = HookMetrics()
    ran(metrics, {"name": "a", "set": 1}, {"name": "b-", "set": 1})
    metrics.ran(HookRunSample("ingress", "a.sh", "b", "main", RunOutcome.SUCCESS, 1.0, 1.0, 1.0, 1))
    found = parse(metrics.exposition())
    described = {each.name: each for each in HOOK_METRICS}
    assert set(found) == set(described)
    for name, family in found.items():
        assert name.startswith("wharfinger_")
        assert (family.kind, family.help) == (described[name].kind, described[name].help)
    assert found["wharfinger_hook_metric_series"].value() == 1
    assert found["wharfinger_hook_metric_refused_total"].value() == 1
    assert found["wharfinger_hook_metric_bytes"].value() >= len(metrics.exposition_hooks())


# --- hostile files


SEEDS: Final[tuple[dict[str, object], ...]] = (
    {"name": "hook_metric", "action": "set", "value": 33, "labels": {"kind": "pod"}},
    {"name": "runs_total", "action": "add", "value": 1, "labels": {}},
    {"name": "dur", "action": "observe", "value": 0.3, "buckets": [0.1, 0.5, 1], "labels": {"a": "b"}},
    {"group": "g1", "action": "expire"},
    {"group": "g1", "name": "dur_sum", "set": 2, "labels": {"ns": "a"}},
    {"name": "short", "add": 3},
)
SCALARS: Final[tuple[object, ...]] = (
    *(None, True, 0, -1, 2**64, 10**308, 1.5, -0.0, 1e308, 5e-324),
    *(
        "",
        "a",
        "le",
        "__name__",
        "a-b",
        "\u2713",
        "\\",
        '"',
        "\n",
        "\x00",
        "x" * 5_000,
        "wharfinger_ready",
        "add",
        "expire",
    ),
    *([], {}, [1], [2, "x"], {"a": "b"}, {"a": 1}, list(range(MAX_BUCKETS + 1))),
)
KEYS: Final = ("name", "action", "value", "add", "set", "buckets", "labels", "group", "more")
BYTES: Final = (
    b"",
    b"NaN",
    b"1e999",
    b"9" * 400,
    b"\xff",
    b"\xed\xa0\x80",
    b'"\\ud800"',
    b"{",
    b"}",
    b"[",
    b"null",
    b"{" * 300,
)


def mutated(source: random.Random) -> bytes:
    """Return a file with exchanged values, moved keys, and inserted bytes."""
    documents = []
    for _ in range(source.choice((1, 1, 2, 5))):
        document = dict(source.choice(SEEDS))
        for _ in range(source.choice((0, 1, 1, 2))):
            value = source.choice((source.choice(SCALARS), source.choice(SEEDS).get(source.choice(KEYS))))
            document[source.choice(KEYS)] = value
        if source.random() < 0.2:
            document["labels"] = {str(source.choice(SCALARS))[:300]: str(source.choice(SCALARS)) for _ in range(3)}
        documents.append(json.dumps(document, ensure_ascii=source.random() < 0.5).encode())
    data = bytearray(source.choice((b"\n", b"")).join(documents))
    for _ in range(source.choice((0, 0, 0, 1, 3))):
        at = source.randrange(len(data) + 1)
        if source.random() < 0.5:
            data[at:at] = source.choice(BYTES)
        else:
            data[at : at + 1] = bytes([source.randrange(256)])
    return bytes(data)


def test_mutated_metric_files_raise_declared_errors_and_leave_readable_metrics() -> None:
    source = random.Random(34)  # noqa: S311 - the same inputs every time
    limits = MetricLimits(package_bytes=50_000, bytes=80_000, package_samples=60, samples=100)
    metrics, count = HookMetrics(limits), scaled(100_000, 1_200)
    taken = refused = 0
    for number in range(count):
        package, hook = source.choice(("ingress", "prod.shop", "global")), source.choice(("a.sh", "b\udcff.sh"))
        try:
            found = read_metric_operations(read_metrics(mutated(source), hook=hook), hook=hook)
        except HookError as error:
            assert error.file == METRICS
            refused += 1
            continue
        taken += 1
        assert len(metrics.apply(package, hook, found)) <= MAX_WARNINGS
        if number % 50 == 0:
            assert len(metrics.exposition_hooks().encode()) <= limits.bytes
            scraped(metrics)
        if source.random() < 0.001:
            metrics.forget(package)
    assert min(taken, refused) > count // 20, (taken, refused)
    for package in ("ingress", "prod.shop", "global"):
        metrics.forget(package)
    assert scraped(metrics) == {}


def test_invalid_byte_sequences_are_refused() -> None:
    for piece in BYTES[1:]:
        with pytest.raises(HookError, match="METRICS_PATH"):
            read_metric_operations(read_metrics(b'{"name":"a","set":' + piece, hook="h"), hook="h")


def test_labels_cannot_claim_the_series_of_another_package() -> None:
    """A hook may set any namespace or module label, but may not publish to the series of another package."""
    metrics = HookMetrics()
    published = {"name": "depth", "action": "set", "value": 1}
    for package in ("prod.web", "web"):
        assert ran(metrics, published, package=package) == ()
    forged = {**published, "value": 2, "group": "g"}
    refused = ("depth: another package publishes it with the same labels",)
    assert ran(metrics, {**forged, "labels": {"namespace": "prod"}}, package="web") == refused
    assert ran(metrics, {**forged, "labels": {"module": "web"}}, package="global") == refused
    assert set(scraped(metrics)["depth"].samples.values()) == {1}
