import pytest

from wharfinger.control_plane.api.admissionregistration.webhook_clients import client_errors
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"url": "https://a/b"}, []),
        ({"url": "https://[::1/"}, ["x.url: Required value: url must be a valid URL"]),
        ({"url": ""}, ["x.url: Invalid value: \"\": 'https' is the only", "host must be specified"]),
        ({"url": "https://u:p@a?b#c"}, ["user information", "fragments", "query parameters"]),
        ({"service": {"name": "a", "namespace": "b", "port": 443, "path": "/"}}, []),
        ({"service": {"port": 0}}, ["x.service.name: Required", "x.service.namespace: Required", "port is not valid"]),
        ({"service": {"name": "a", "namespace": "b", "port": 1, "path": "//"}}, ["segment[0] may not be empty"]),
        ({"service": {"name": "a", "namespace": "b", "port": 1, "path": "/a/"}}, []),
        (
            {"service": {"name": "a", "namespace": "b", "port": 1, "path": "ab/B"}},
            ["must start with a '/'", "segment[1]: "],
        ),
        ({"url": "https://a", "service": {}}, ["x: Required value: exactly one of url or service is required"]),
        ({}, ["x: Required value: exactly one of url or service is required"]),
    ],
)
def test_invalid_webhook_clients_are_reported(config: JsonObject, said: list[str]) -> None:
    errors = [str(error) for error in client_errors(config, "x")]

    assert len(errors) == len(said)
    assert all(part in error for part, error in zip(said, errors, strict=True)), errors
