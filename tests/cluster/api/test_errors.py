"""Errors that count as transient, and errors that do not."""

import pytest

from wharfinger.cluster.api.errors import (
    ApiError,
    ClusterError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    SchemaMismatchError,
    UnknownKindError,
    UnreachableError,
    api_error,
)


@pytest.mark.parametrize(
    ("code", "kind", "transient"),
    [
        (400, InvalidError, False),
        (401, ApiError, True),
        (403, ForbiddenError, True),
        (404, NotFoundError, True),
        (405, ApiError, False),
        (409, ConflictError, True),
        (410, GoneError, True),
        (413, ApiError, False),
        (422, InvalidError, False),
        (429, ApiError, True),
        (500, ApiError, True),
        (503, ApiError, True),
    ],
)
def test_the_status_code_decides_the_error_type(code: int, kind: type[ApiError], transient: bool) -> None:
    error = api_error(code, "Reason", "what happened")
    assert type(error) is kind
    assert error.transient is transient
    assert (error.code, error.reason, error.message) == (code, "Reason", "what happened")
    assert str(error) == f"what happened ({code} Reason)"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.x: field not declared in schema",
            True,
        ),
        (
            "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): errors:\n  .spec.ports: duplicate",
            True,
        ),
        (
            "failed to create typed patch object (shop/a; x.example/v1, Kind=A): no corresponding type for x.example/v1, Kind=A",
            False,
        ),
        ("etcdserver: leader changed", False),
    ],
)
def test_apply_errors_of_an_outdated_schema_are_recognized(message: str, kind: bool) -> None:
    """Right after an upgrade of a CRD, an API server may still use the old schema.

    So an error about the schema is a SchemaMismatchError, which is transient.
    """
    error = api_error(500, "", message)
    assert isinstance(error, SchemaMismatchError) is kind
    assert error.transient


def test_unreachable_and_unknown_kind_errors_are_transient() -> None:
    for kind in (UnreachableError, UnknownKindError):
        assert issubclass(kind, ClusterError)
        assert kind("x").transient


def test_retry_after_is_set_only_if_the_server_gave_it() -> None:
    assert UnreachableError("x").retry_after_s is None
    assert api_error(429, "x", "x").retry_after_s is None
    assert api_error(429, "x", "x", retry_after_s=3.0).retry_after_s == 3.0
