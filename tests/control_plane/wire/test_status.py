from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.status import FieldError

DEPLOYMENTS = builtin("apps", "v1", "deployments").kind
PODS = builtin("", "v1", "pods").kind


def test_a_status_has_only_known_fields() -> None:
    assert status.not_found(DEPLOYMENTS, "x").body() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "x" not found',
        "reason": "NotFound",
        "details": {"name": "x", "group": "apps", "kind": "deployments"},
        "code": 404,
    }
    assert "reason" not in status.internal("oh").body()
    assert "details" not in status.bad_request("oh").body()


def test_equal_messages_are_shown_once_but_are_separate_causes() -> None:
    wrong = FieldError("a", "FieldValueInvalid", "no")

    error = status.invalid("", "Pod", "p", [wrong, wrong])

    assert error.message == 'Pod "p" is invalid: a: no'
    assert error.details is not None
    assert len(error.details["causes"]) == 2  # type: ignore[arg-type]


def test_different_messages_are_listed() -> None:
    error = status.invalid("apps", "Deployment", "d", [FieldError("a", "x", "no"), FieldError("b", "y", "neither")])

    assert error.message == 'Deployment.apps "d" is invalid: [a: no, b: neither]'


def test_a_forbidden_object_may_have_causes() -> None:
    error = status.forbidden(PODS, "p", "because", [FieldError("f", "r", "m")])

    assert error.message == 'pods "p" is forbidden: because'
    assert error.details == {"name": "p", "kind": "pods", "causes": [{"reason": "r", "message": "m", "field": "f"}]}
    assert status.forbidden(PODS, "", "because").message == "pods is forbidden: because"


def test_success_names_the_deleted_object() -> None:
    assert status.success("d", "apps", "deployments", "u")["details"] == {
        "name": "d",
        "group": "apps",
        "kind": "deployments",
        "uid": "u",
    }


def test_errors_have_their_http_codes() -> None:
    errors = [
        status.unauthorized(),
        status.method_not_allowed(),
        status.already_exists(PODS, "p"),
        status.conflict(PODS, "p"),
        status.precondition_conflict(PODS, "p", "why"),
        status.apply_conflict("m", [('"alpha"', ".x")]),
        status.expired("m"),
        status.not_acceptable(["a"]),
        status.unsupported_media_type(["a"]),
        status.no_such_resource(),
        status.forbidden_path("u", "get", "/x"),
    ]

    assert [error.code for error in errors] == [401, 405, 409, 409, 409, 409, 410, 406, 415, 404, 403]


def test_a_future_revision_has_a_retry_time() -> None:
    error = status.too_large_revision(9, 3)

    assert (error.retry_after, error.message) == (1, "Timeout: Too large resource version: 9, current: 3")


def test_errors_are_limited_to_the_size_of_an_answer() -> None:
    wrong = FieldError("a", "FieldValueInvalid", "x" * (status.MAX_ERROR_CHARS // 4))

    details = status.invalid("", "Pod", "p", [wrong] * 100).details

    assert details is not None
    assert details["causes"] == [{"reason": wrong.reason, "message": wrong.message, "field": "a"}] * 5
