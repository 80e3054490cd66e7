"""The paths of webhooks."""

import pytest

from wharfinger.hooks.webhooks.addresses import Address, ReviewKind, read_address, safe_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("weird spaced Name", "weird-spaced-name"),
        ("test-policy.example.com", "test-policy-example-com"),
        ("aB/c", "a-b/c"),
    ],
)
def test_webhook_names_are_made_safe_for_urls(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize("package", ["crons", "prod.web"])
@pytest.mark.parametrize("kind", ReviewKind)
def test_address_is_read_back_from_its_path(package: str, kind: ReviewKind) -> None:
    address = Address(package, kind, "a-policy/part")
    assert read_address(address.path) == address


@pytest.mark.parametrize(
    "path", ["/validate", "/hooks/a", "/hooks/a/validating/", "/hooks/a/other/b", "/hooks//validating/b"]
)
def test_other_paths_are_not_addresses(path: str) -> None:
    assert read_address(path) is None
