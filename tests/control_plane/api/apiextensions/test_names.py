"""The approval of CustomResourceDefinitions in protected groups, and the URLs of their conversion webhooks."""

import pytest

from wharfinger.control_plane.api.apiextensions.names import approval, webhook_url_errors
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", "MissingAnnotation"),
        ("unapproved", "UnapprovedAnnotation"),
        ("https://a/b", "ApprovedAnnotation"),
        ("https://[", "InvalidAnnotation"),
    ],
)
def test_approval_is_needed_for_protected_groups_only(text: str, state: str) -> None:
    obj: JsonObject = {"metadata": {"annotations": {"api-approved.kubernetes.io": text}}, "spec": {"group": "x.k8s.io"}}
    assert approval(obj)[0] == state
    assert approval({**obj, "spec": {"group": "example.com"}}) == ("", "")


def test_invalid_webhook_urls_are_reported() -> None:
    assert webhook_url_errors("u", "https://a/b") == []
    assert "must be a valid URL" in str(webhook_url_errors("u", "https://a:b/")[0])
