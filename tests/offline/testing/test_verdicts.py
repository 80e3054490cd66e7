"""The comparison of builds with the expectations of tests."""

import pytest

from tests.offline.support import flux_id
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.orchestrator.result import Failure, Manifest, Result
from wharfinger.offline.store.identity import object_id
from wharfinger.offline.testing.case_file import Absent, Case, Count, Expectation, Fails, Matches, ObjectName
from wharfinger.offline.testing.verdicts import MOST_PROBLEMS, judged

ME = flux_id("HelmRelease", "web")
CONTAINERS: JsonObject = {
    "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1", "args": ["x", "y"]}]
}
OBJECTS: list[JsonObject] = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "one"}, "spec": CONTAINERS},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "two"}, "spec": {"n": 1}},
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "one"},
        "stringData": {"a": "HUNTER"},
    },
    {"apiVersion": "x.io/v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "one"}},
]
BUILT = Result({ME: tuple(Manifest(object_id(each), each) for each in OBJECTS)}, {}, {})
FAILED = Result({}, {ME: Failure(ME, "name a colour")}, {})
POD = ObjectName("one", "Pod", "web")


def problems(*expectations: Expectation, result: Result = BUILT) -> list[str]:
    verdict = judged(Case("x", "x", None, expectations), result)
    assert verdict.passed is not bool(verdict.problems)
    return list(verdict.problems)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"spec": {"containers": [{"name": "b", "image": "b:1"}]}}, []),
        ({"spec": {"containers": [{"name": "b", "args": ["x", "y"]}], "none": None}}, []),
        ({"spec": {}}, []),
        (
            {"spec": {"containers": [{"name": "b", "image": "b:2"}]}},
            ['Pod/web: spec.containers[name=b].image: expected "b:2", found "b:1"'],
        ),
        (
            {"spec": {"containers": [{"name": "c"}]}},
            ["Pod/web: spec.containers: expected an item with the name 'c', found none"],
        ),
        (
            {"spec": {"containers": [{"name": "b", "args": ["x"]}]}},
            ["Pod/web: spec.containers[name=b].args: expected 1 items, found 2"],
        ),
        (
            {"spec": {"containers": [{"name": "b", "args": ["y", "x"]}]}},
            [
                'Pod/web: spec.containers[name=b].args[0]: expected "y", found "x"',
                'Pod/web: spec.containers[name=b].args[1]: expected "x", found "y"',
            ],
        ),
        ({"spec": None}, ["Pod/web: spec: expected nothing, found "]),
        (
            {"kind": 1, "more": True},
            ['Pod/web: kind: expected 1, found "Pod"', "Pod/web: more: expected true, found nothing"],
        ),
    ],
)
def test_expected_fields_are_compared(fields: JsonObject, told: list[str]) -> None:
    found = [each.removeprefix("one/") for each in problems(Matches(POD, fields))]
    assert len(found) == len(told)
    assert all(one.startswith(other) for one, other in zip(found, told, strict=True))


def test_numbers_are_equal_by_value_and_booleans_are_not_numbers() -> None:
    two = ObjectName("two", "Pod", "web")
    assert problems(Matches(two, {"spec": {"n": 1.0}})) == []
    assert problems(Matches(two, {"spec": {"n": True}})) == ["two/Pod/web: spec.n: expected true, found 1"]


def test_objects_are_found_by_kind_and_name() -> None:
    (several,) = problems(Matches(ObjectName("", "Pod", "web"), {}))
    assert several == "Pod/web: several objects have this name: Pod one/web, Pod two/web; name the namespace"
    (none,) = problems(Matches(ObjectName("", "Pod", "absent"), {}))
    assert none == "Pod/absent: is not built; built with this kind: other, web"
    assert problems(Matches(ObjectName("", "Job", "x"), {})) == ["Job/x: is not built; nothing of this kind is built"]
    assert problems(Matches(ObjectName("", "Pod.x.io", "other"), {})) == []


def test_absent_objects_and_counts_are_checked() -> None:
    assert (
        problems(Absent(ObjectName("three", "Pod", "web")), Count("Pod", 3), Count("", 4), Count("Pod.x.io", 1)) == []
    )
    assert problems(Absent(POD), Count("Pod", 2), Count("", 5)) == [
        "one/Pod/web: is built, but was expected to be absent",
        "Pod: expected 2, found 3",
        "objects: expected 5, found 4",
    ]


def test_failures_are_problems_unless_they_are_expected() -> None:
    assert problems(Fails("a colour"), result=FAILED) == []
    assert problems(Count("", 0), result=FAILED) == ["the build failed: HelmRelease flux-system/web: name a colour"]
    assert problems(Fails("a size"), result=FAILED)[1:] == [
        "expected the build to fail with the text 'a size'; it failed with other messages"
    ]
    assert problems(Fails("x")) == ["expected the build to fail with the text 'x'; it succeeded"]


def test_values_of_secrets_are_not_shown() -> None:
    found = problems(Matches(ObjectName("", "Secret", "s"), {"stringData": {"a": "other", "b": None}}))
    assert found == ["Secret/s: stringData.a: expected a value that is hidden, found a value that is hidden"]


def test_the_number_of_problems_is_bounded() -> None:
    many = problems(*(Count("", 100 + number) for number in range(50)))
    assert len(many) == MOST_PROBLEMS + 1
    assert many[-1] == "and 30 more problems"
