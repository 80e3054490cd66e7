"""Names of packages and of their releases: their form, their limits, and how they are printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId, IdentityError, ModuleId, package_id

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@given(LABEL, st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True))
def test_the_first_dot_separates_namespace_and_instance(namespace: str, instance: str) -> None:
    identity = AppId(namespace, instance)
    assert package_id(identity.name) == identity


@given(LABEL)
def test_a_name_without_a_dot_is_that_of_a_module(name: str) -> None:
    identity = package_id(name)
    assert identity == ModuleId(name)
    assert (identity.name, identity.release, identity.namespace) == (name, name, SYSTEM_NAMESPACE)


@pytest.mark.parametrize("name", ["", ".web", "prod."])
def test_invalid_runtime_names_are_refused(name: str) -> None:
    with pytest.raises(IdentityError, match=r"<namespace>.<instance>"):
        package_id(name)


@pytest.mark.parametrize("identity", [AppId("prod", "a" * 53), ModuleId("a" * 53, "tools")])
def test_a_release_has_at_most_53_characters(identity: AppId | ModuleId) -> None:
    assert identity.release == "a" * 53


@pytest.mark.parametrize(
    ("identity", "who"),
    [(AppId("prod", "a" * 54), "Application prod/a"), (ModuleId("a" * 54), "Module a")],
)
def test_a_longer_release_name_is_refused(identity: AppId | ModuleId, who: str) -> None:
    with pytest.raises(IdentityError, match=rf"{who}.*at most 53 characters.*found 54.*shorter"):
        _ = identity.release


def test_identities_are_printed_as_kubectl_prints_them() -> None:
    assert (str(AppId("prod", "web")), str(ModuleId("ingress"))) == ("prod/web", "ingress")
