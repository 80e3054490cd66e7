"""The store of published metrics: its rules, its limits, and a comparison with a simple model."""

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.exposition import Family, parse
from tests.scale import scaled
from wharfinger.formats.exposition import exposition
from wharfinger.hooks.metrics.operations import Add, Observe, Publication, Set
from wharfinger.hooks.metrics.store import MAX_COUNTER, Labels, MetricLimits, MetricStore, Refused

LIMITS: Final = MetricLimits()


def scraped(store: MetricStore) -> dict[str, Family]:
    """Return the families as a scraper reads them, and check that the store counts at least the bytes of the exposed text."""
    text = exposition(store.lines())
    found = parse(text)
    assert len(text.encode()) <= store.statistics().bytes
    assert set(found) == set(store._families)
    return found


def pairs(**labels: str) -> Labels:
    return tuple(sorted(labels.items()))


def publish(store: MetricStore, operation: Publication, package: str = "p", **labels: str) -> None:
    """Publish the operation in its group, with the given labels in addition to its own."""
    store.publish(package, operation.group, pairs(**{**operation.labels, **labels}), operation)


def test_actions_add_set_and_observe_values() -> None:
    store = MetricStore(LIMITS)
    for value in (1, 2.9, 0.4):
        publish(store, Add("g", "runs_total", {}, value))
        publish(store, Set("g", "depth", {}, value))
        publish(store, Observe("g", "dur", {}, value, (0.5, 1)))
    found = scraped(store)
    assert (found["runs_total"].kind, found["runs_total"].value()) == ("counter", 3), "fractions are cut off"
    assert (found["depth"].kind, found["depth"].value()) == ("gauge", 0.4)
    assert found["dur"].samples == {
        ("dur_bucket", (("le", "0.5"),)): 1,
        ("dur_bucket", (("le", "1"),)): 2,
        ("dur_bucket", (("le", "+Inf"),)): 3,
        ("dur_sum", ()): pytest.approx(4.3),
        ("dur_count", ()): 3,
    }


def test_expire_removes_all_series_of_one_group_only() -> None:
    store = MetricStore(LIMITS)
    publish(store, Set("g", "a", {"x": "1"}, 1))
    publish(store, Add("g", "b_total", {}, 1))
    publish(store, Set("h", "a", {"x": "2"}, 2))
    publish(store, Set("g", "a", {"x": "3"}, 3), package="other")
    store.expire("p", "g")
    assert scraped(store)["a"].samples == {("a", (("x", "2"),)): 2, ("a", (("x", "3"),)): 3}
    assert "b_total" not in scraped(store)
    store.expire("p", "never")
    store.expire("nobody", "g")
    store.forget("p")
    store.forget("nobody")
    assert scraped(store)["a"].samples == {("a", (("x", "3"),)): 3}
    store.forget("other")
    assert replace(store.statistics(), refused=0) == MetricStore(LIMITS).statistics()
    assert [*store._families, *store._kinds, *store._owners, *store._packages] == []


def test_a_series_belongs_to_the_group_that_published_it_last() -> None:
    store = MetricStore(LIMITS)
    publish(store, Set("g", "a", {}, 1))
    publish(store, Set("h", "a", {}, 2))
    store.expire("p", "g")
    assert scraped(store)["a"].value() == 2
    store.expire("p", "h")
    assert scraped(store) == {}


def test_an_empty_label_is_a_missing_one() -> None:
    store = MetricStore(LIMITS)
    publish(store, Add("g", "a", {"x": ""}, 1))
    publish(store, Add("g", "a", {}, 1))
    publish(store, Add("g", "a", {"x": "1", "y": ""}, 1))
    assert exposition(store.lines()).splitlines()[1:] == ['a{x=""} 2', 'a{x="1"} 1']


def test_series_of_another_package_is_refused() -> None:
    store = MetricStore(LIMITS)
    publish(store, Set("g", "a", {"x": "1"}, 1), package="one")
    with pytest.raises(Refused, match="a: another package publishes it with the same labels"):
        publish(store, Set("g", "a", {"x": "1", "y": ""}, 2), package="two")
    publish(store, Set("g", "a", {"x": "2"}, 2), package="two")
    store.forget("one")
    publish(store, Set("g", "a", {"x": "1"}, 3), package="two")
    assert scraped(store)["a"].samples == {("a", pairs(x="1")): 3, ("a", pairs(x="2")): 2}


def test_label_sets_are_widened_and_narrowed_per_package() -> None:
    store = MetricStore(LIMITS)
    publish(store, Set("g", "a", {}, 0))
    publish(store, Set("g", "a", {"x": "1"}, 1))
    publish(store, Set("h", "a", {"y": "2"}, 2))
    publish(store, Set("g", "a", {"z": "3"}, 3), package="other")
    text = exposition(store.lines())
    assert text.splitlines() == [
        "# TYPE a gauge",
        'a{x="",y=""} 0',
        'a{x="1",y=""} 1',
        'a{y="2",x=""} 2',
        'a{z="3"} 3',
    ]
    store.expire("p", "h")
    assert 'a{x="1"} 1' in exposition(store.lines()).splitlines()


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (
            Add("g", "a", {}, 1),
            Set("g", "a", {}, 1),
            "a: it is a counter and cannot become a gauge while it is published",
        ),
        (Set("g", "a", {}, 1), Observe("g", "a", {}, 1, (1,)), "a: it is a gauge and cannot become a histogram"),
        (
            Observe("g", "a", {}, 1, (1,)),
            Set("g", "a_sum", {}, 1),
            "a_sum: samples of a gauge .* as samples of a, a histogram",
        ),
        (
            Set("g", "a_bucket", {}, 1),
            Observe("g", "a", {}, 1, (1,)),
            "a: samples of a histogram .* as samples of a_bucket, a gauge",
        ),
        (Observe("g", "a", {}, 1, (1,)), Observe("g", "a", {}, 1, (1, 2)), "a: its buckets differ"),
        (Set("g", "b", {}, 1), Add("g", "a", {}, -1), "a: a counter cannot decrease"),
        (
            Add("g", "a", {}, 2.0**62),
            Add("g", "a", {}, 2.0**62 + 2.0**50),
            f"a: the counter would exceed {MAX_COUNTER}",
        ),
        (Set("g", "b", {}, 1), Set("g", "a-b", {}, 1), "'a-b' is not a name of a metric"),
        (Set("g", "b", {}, 1), Set("g", "", {}, 1), "'' is not a name of a metric"),
        (
            Set("g", "b", {}, 1),
            Set("g", "wharfinger_ready", {}, 1),
            "wharfinger_ready: names that begin with wharfinger_",
        ),
        (Set("g", "b", {}, 1), Set("g", "a", {"le": "1"}, 1), "a: 'le' is not a name of a label"),
        (Set("g", "b", {}, 1), Set("g", "a", {"__x": "1"}, 1), "a: '__x' is not a name of a label"),
        (Set("g", "b", {}, 1), Set("g", "a", {"x" * 201: "1"}, 1), "a: a name of 201 characters; the limit is 200"),
        (Set("g", "b", {}, 1), Set("g" * 201, "a", {}, 1), "a: a name of 201 characters"),
        (Set("g", "b", {}, 1), Set("g", "a" * 201, {}, 1), "a{60}: a name of 201 characters"),
        (
            Set("g", "b", {}, 1),
            Set("g", "a", {"x": "y" * 1001}, 1),
            "a: label x has 1001 characters; the limit is 1000",
        ),
    ],
)
def test_refused_operation_changes_nothing(first: Publication, second: Publication, why: str) -> None:
    store = MetricStore(LIMITS)
    publish(store, first)
    before = exposition(store.lines())
    with pytest.raises(Refused, match=why):
        publish(store, second)
    assert exposition(store.lines()) == before
    assert store.statistics().refused == 1
    scraped(store)


def test_metric_name_is_free_once_its_last_series_is_removed() -> None:
    store = MetricStore(LIMITS)
    publish(store, Observe("g", "a", {}, 1, (1,)), package="one", module="one")
    publish(store, Observe("g", "a", {}, 1, (2,)), package="two", module="two")
    store.forget("one")
    with pytest.raises(Refused, match="a: it is a histogram"):
        publish(store, Set("g", "a", {}, 1))
    store.forget("two")
    publish(store, Set("g", "a", {}, 1))
    publish(store, Set("g", "a_count", {}, 1))
    assert set(scraped(store)) == {"a", "a_count"}


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (MetricLimits(package_samples=3), "more than 3 samples of one package"),
        (MetricLimits(samples=3), "more than 3 samples of all packages"),
        (MetricLimits(package_bytes=400), "more than 400 bytes of one package"),
        (MetricLimits(bytes=400), "more than 400 bytes of all packages"),
        (MetricLimits(labels=3), "more than 3 labels of one metric name"),
    ],
)
def test_store_limits_refuse_new_series(limits: MetricLimits, why: str) -> None:
    store = MetricStore(limits)
    with pytest.raises(Refused, match=why):
        for number in range(100):
            publish(store, Set("g", "a", {f"l{number}": "v"}, number))
    before = exposition(store.lines())
    publish(store, Set("g", "a", {"l0": "v"}, 7))
    assert scraped(store)["a"].value(l0="v") == 7, "what is there is still updated"
    assert len(before.splitlines()) > 2
    store.expire("p", "g")
    publish(store, Set("g", "b", {"l": "v"}, 1))
    assert set(scraped(store)) == {"b"}


def test_package_at_its_limit_does_not_affect_other_packages() -> None:
    store = MetricStore(MetricLimits(package_samples=3))
    for package in ("one", "two"):
        for number in range(3):
            publish(store, Set("g", "a", {"n": str(number)}, number), package=package, module=package)
        with pytest.raises(Refused):
            publish(store, Set("g", "a", {"n": "3"}, 3), package=package, module=package)
    assert len(scraped(store)["a"].samples) == 6


def test_all_lines_of_a_histogram_count_against_the_limit() -> None:
    store = MetricStore(MetricLimits(package_samples=9))
    publish(store, Observe("g", "a", {}, 1, (1, 2)))
    with pytest.raises(Refused, match="more than 9 samples of one package"):
        publish(store, Observe("g", "b", {}, 1, (1, 2)))
    publish(store, Observe("g", "b", {}, 1, (1,)))
    assert sum(len(family.samples) for family in scraped(store).values()) == 9


def test_label_widening_counts_against_the_byte_limit_of_a_package() -> None:
    """A label of one series is added to all other series of the same metric. So the limit must count the bytes of the exposed
    text, and not those of the operations.
    """
    limits = MetricLimits(package_bytes=100_000)
    store, refused = MetricStore(limits), 0
    for number in range(2_000):
        name = f"{'x' * 150}{number % 40}"
        try:
            publish(store, Observe("g", "a", {name: "\\" * 500 + "\u2713"}, 1, tuple(range(50))))
        except Refused:
            refused += 1
        try:
            publish(store, Set("g", f"b{number}", {}, 1))
        except Refused:
            refused += 1
    assert refused > 1_000
    assert 1_000 < len(exposition(store.lines()).encode()) <= store.statistics().bytes <= limits.package_bytes
    scraped(store)


# --- against a model


PACKAGES: Final = ("one", "two")
GROUPS: Final = ("g", "h")
NAMES: Final = ("a", "b", "a_sum", "a_count")
OWN: Final = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from(("", '"\\\n', "ü")))
NUMBERS: Final = st.sampled_from((0.0, 0.5, 1.0, 7.0))


class AgainstModel(RuleBasedStateMachine):
    """A test that compares the store with a model, which keeps all publications in a list.

    Each package has a label with its name, as in the calls by HookMetrics.
    """

    def __init__(self) -> None:
        super().__init__()
        self.store = MetricStore(LIMITS)
        self.model: list[tuple[str, str, str, str, dict[str, str], list[float]]] = []

    def is_free(self, kind: str, name: str) -> bool:
        """Return whether a family may have this name: neither it nor a name of its samples may occur in another family."""

        def names(kind: str, name: str) -> set[str]:
            more = ("_sum", "_count", "_bucket") if kind == "histogram" else ()
            return {name, *(name + suffix for suffix in more)}

        return all(
            kind == other if called == name else not names(kind, name) & names(other, called)
            for _, _, other, called, _, _ in self.model
        )

    def publish(self, package: str, group: str, kind: str, operation: Publication, values: list[float]) -> None:
        given = {**operation.labels, "package": package}
        labels = {name: value for name, value in given.items() if value}
        try:
            self.store.publish(package, group, tuple(sorted(given.items())), operation)
        except Refused:
            assert not self.is_free(kind, operation.name)
            return
        assert self.is_free(kind, operation.name)
        same = [each for each in self.model if (each[0], each[3], each[4]) == (package, operation.name, labels)]
        before = same[0][5] if same else []
        self.model = [each for each in self.model if each not in same]
        self.model.append((package, group, kind, operation.name, labels, [*before, *values]))

    @rule(
        package=st.sampled_from(PACKAGES),
        group=st.sampled_from(GROUPS),
        name=st.sampled_from(NAMES),
        own=OWN,
        value=NUMBERS,
    )
    def add(self, package: str, group: str, name: str, own: dict[str, str], value: float) -> None:
        self.publish(package, group, "counter", Add(group, name, own, value), [int(value)])

    @rule(
        package=st.sampled_from(PACKAGES),
        group=st.sampled_from(GROUPS),
        name=st.sampled_from(NAMES),
        own=OWN,
        value=NUMBERS,
    )
    def set(self, package: str, group: str, name: str, own: dict[str, str], value: float) -> None:
        self.publish(package, group, "gauge", Set(group, name, own, value), [value])

    @rule(
        package=st.sampled_from(PACKAGES),
        group=st.sampled_from(GROUPS),
        name=st.sampled_from(NAMES),
        own=OWN,
        value=NUMBERS,
    )
    def observe(self, package: str, group: str, name: str, own: dict[str, str], value: float) -> None:
        self.publish(package, group, "histogram", Observe(group, name, own, value, (0.5, 1.0)), [value])

    @rule(package=st.sampled_from(PACKAGES), group=st.sampled_from(GROUPS))
    def expire(self, package: str, group: str) -> None:
        self.store.expire(package, group)
        self.model = [each for each in self.model if each[:2] != (package, group)]

    @rule(package=st.sampled_from(PACKAGES))
    def forget(self, package: str) -> None:
        self.store.forget(package)
        self.model = [each for each in self.model if each[0] != package]

    @invariant()
    def a_scraper_sees_the_model(self) -> None:
        found = scraped(self.store)
        assert {name: family.kind for name, family in found.items()} == {each[3]: each[2] for each in self.model}
        assert self.store.statistics().series == len(self.model)
        lines = 0
        for _, _, kind, name, labels, values in self.model:
            family = found[name]
            if kind == "histogram":
                lines += 5
                key = self.labels_of(name, labels)
                assert family.samples[f"{name}_count", key] == len(values)
                assert family.samples[f"{name}_sum", key] == sum(values)
                half = tuple(sorted((*key, ("le", "0.5"))))
                assert family.samples[f"{name}_bucket", half] == sum(value <= 0.5 for value in values)
            else:
                lines += 1
                wanted = sum(values) if kind == "counter" else values[-1]
                assert family.samples[name, self.labels_of(name, labels)] == wanted
        assert sum(len(family.samples) for family in found.values()) == lines == self.store._samples

    def labels_of(self, name: str, labels: dict[str, str]) -> Labels:
        """Return the labels of a series, and an empty value for each further label that another series of this name and package
        has.
        """
        names = {label for each in self.model if (each[0], each[3]) == (labels["package"], name) for label in each[4]}
        return tuple(sorted((label, labels.get(label, "")) for label in names))


AgainstModel.TestCase.settings = settings(max_examples=scaled(1_000, 50), stateful_step_count=30, deadline=None)
TestAgainstModel = AgainstModel.TestCase
