import pytest

from tests.control_plane.support.backend_views import FakeView
from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.api.core.quotas.limit_admission import check_limits, fill_limits
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, find


def asked(obj: JsonObject, *limits: JsonObject, plural: str = "pods", old: JsonObject | None = None) -> Admission:
    items: list[JsonValue] = list(limits)
    view = FakeView({("", "limitranges"): [{"metadata": {"namespace": "n"}, "spec": {"limits": items}}]})
    operation = Operation.CREATE if old is None else Operation.UPDATE
    return Admission(view, User("u", ()), builtin("", "v1", plural).kind, operation, "", "n", "a", obj, old)


def pod(requests: JsonObject, limits: JsonObject) -> JsonObject:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}]}}


@pytest.mark.parametrize(
    ("bounds", "requests", "limits", "said"),
    [
        ({"min": {"cpu": "1"}}, {}, {}, "minimum cpu usage per Container is 1.  No request is specified"),
        ({"min": {"cpu": "1"}}, {"cpu": "500m"}, {}, "minimum cpu usage per Container is 1, but request is 500m"),
        (
            {"min": {"cpu": "1"}},
            {"cpu": "1"},
            {"cpu": "500m"},
            "minimum cpu usage per Container is 1, but limit is 500m",
        ),
        ({"max": {"cpu": "1"}}, {}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        ({"max": {"cpu": "1"}}, {}, {"cpu": "2"}, "maximum cpu usage per Container is 1, but limit is 2"),
        ({"max": {"cpu": "1"}}, {"cpu": "2"}, {"cpu": "1"}, "maximum cpu usage per Container is 1, but request is 2"),
        ({"max": {"cpu": "10E"}}, {}, {"cpu": "1"}, ""),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {}, {"cpu": "1"}, "but no request is specified or request is 0"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {}, "but no limit is specified or limit is 0"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "3"}, "is 2, but provided ratio is 3.000000"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "2"}, ""),
    ],
)
def test_container_resources_outside_the_bounds_are_refused(
    bounds: JsonObject, requests: JsonObject, limits: JsonObject, said: str
) -> None:
    request = asked(pod(requests, limits), {"type": "Container", **bounds})
    if not said:
        check_limits(request)
        return

    with pytest.raises(StatusError) as refused:
        check_limits(request)

    assert said in refused.value.message


def test_pod_resources_outside_the_bounds_are_refused() -> None:
    with pytest.raises(StatusError, match="maximum cpu usage per Pod is 1, but limit is 2"):
        check_limits(asked(pod({}, {"cpu": "2"}), {"type": "Pod", "max": {"cpu": "1"}}))


def test_claims_outside_the_bounds_are_refused() -> None:
    claim: JsonObject = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    bounds: JsonObject = {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}

    with pytest.raises(StatusError, match="maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"):
        check_limits(asked(claim, bounds, plural="persistentvolumeclaims"))
    with pytest.raises(StatusError, match="No request is specified"):
        check_limits(asked({}, bounds, {"type": "Pod", "max": {"cpu": "1"}}, plural="persistentvolumeclaims"))


def test_other_writes_are_not_checked() -> None:
    bounds: JsonObject = {"type": "Container", "max": {"cpu": "1"}}

    check_limits(asked(pod({}, {"cpu": "2"}), bounds, old=pod({}, {"cpu": "2"})))
    assert fill_limits(asked({}, bounds, plural="persistentvolumeclaims"), {"a": 1}) == {"a": 1}


def test_containers_get_default_requests_and_limits() -> None:
    bounds: JsonObject = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}}
    found = fill_limits(asked({}, bounds), pod({}, {}))

    assert find(found, "spec", "containers", 0, "resources") == {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}
    said = find(found, "metadata", "annotations", "kubernetes.io/limit-ranger")
    assert said == "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    assert "metadata" not in fill_limits(asked({}, bounds), pod({"cpu": "1"}, {"cpu": "1"}))
