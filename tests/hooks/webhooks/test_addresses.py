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
def test_names_in_urls(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize("package", ["crons", "prod.web"])
@pytest.mark.parametrize("kind", ReviewKind)
def test_a_path_names_what_it_was_made_of(package: str, kind: ReviewKind) -> None:
    address = Address(package, kind, "a-policy/part")
    assert read_address(address.path) == address


@pytest.mark.parametrize(
    "path", ["/validate", "/hooks/a", "/hooks/a/validating/", "/hooks/a/other/b", "/hooks//validating/b"]
)
def test_other_paths(path: str) -> None:
    assert read_address(path) is None
