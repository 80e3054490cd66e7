import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.core.quotas.validation import LIMIT_RANGE_RULES, QUOTA_RULES
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"hard": {"pods": "1", "hugepages-2Mi": "1Gi", "requests.example.com/x": "1"}}, ""),
        ({"hard": {"storage": "1"}}, "must be a standard resource for quota"),
        ({"hard": {"requests.storage": "1"}, "scopes": ["VolumeAttributesClass"]}, ""),
        ({"hard": {"pods": "1"}, "scopes": ["VolumeAttributesClass"]}, "unsupported scope applied to resource"),
        ({"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}, "unsupported scope applied to resource"),
        ({"scopes": ["Terminating", "NotTerminating"]}, "conflicting scopes"),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]
                }
            },
            "",
        ),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort", "operator": "DoesNotExist"}]}},
            "must be 'Exists'",
        ),
    ],
)
def test_invalid_quotas_are_refused(spec: JsonObject, said: str) -> None:
    errors = [str(error) for error in QUOTA_RULES.create({"spec": spec})]

    assert not errors if not said else any(said in error for error in errors)


def test_changed_scopes_and_invalid_usage_are_refused() -> None:
    old: JsonObject = {"spec": {"scopes": ["BestEffort"]}}

    assert QUOTA_RULES.update(old, old) == []
    assert QUOTA_RULES.update({"spec": {}}, old)[0].message == "Invalid value: null: field is immutable"
    assert len(QUOTA_RULES.status({"status": {"hard": {"odd": "1"}, "used": {"pods": "-1"}}}, old)) == 3


def test_requests_above_limits_cause_a_warning() -> None:
    quota: JsonObject = {"spec": {"hard": {"cpu": "2", "limits.cpu": "1"}}}

    assert QUOTA_RULES.warnings(quota, None) == ["ResourceQuota cpu (2) should be less than limits.cpu (1)"]
    assert QUOTA_RULES.warnings(quota, quota) == []


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "default": {"cpu": "2"}}, ""),
        ({"type": "example.com/x", "max": {"storage": "1"}}, ""),
        ({"type": "a b"}, "name part"),
        (
            {"type": "Container", "min": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
            "greater than default request value 1",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}},
            "request value 2 is greater than max",
        ),
        (
            {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}},
            "greater than default limit value 1",
        ),
        (
            {"type": "Container", "min": {"cpu": "2"}, "default": {"cpu": "1"}},
            "min value 2 is greater than default value 1",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "2"}},
            "default value 2 is greater than max value 1",
        ),
        ({"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}}, "ratio 500m is less than 1"),
        ({"type": "Container", "min": {"cpu": "0"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}}, ""),
        (
            {"type": "Container", "default": {"example.com/x": "2"}, "defaultRequest": {"example.com/x": "1"}},
            "must equal to defaultRequest value 1 in example.com/x",
        ),
        ({"type": "PersistentVolumeClaim"}, "either minimum or maximum storage value is required"),
    ],
)
def test_invalid_limit_ranges_are_refused(item: JsonObject, said: str) -> None:
    errors = [str(error) for error in LIMIT_RANGE_RULES.update({"spec": {"limits": [item]}}, {})]

    assert not errors if not said else any(said in error for error in errors)


@given(shapes("spec", "hard", "scopes", "limits", "min", "max", "type", "scopeSelector", "matchExpressions", "cpu"))
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    (
        QUOTA_RULES.create(obj),
        QUOTA_RULES.status(obj, obj),
        QUOTA_RULES.warnings(obj, None),
        LIMIT_RANGE_RULES.create(obj),
    )
