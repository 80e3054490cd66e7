"""Confinement: which releases may contain only objects of their own namespace."""

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.runtime.core.confinement import Confinement
from wharfinger.runtime.resources.identity import AppId, ModuleId
from wharfinger.runtime.resources.release_claims import ReleaseClaims


def test_the_release_of_an_application_is_confined_unless_its_namespace_allows_more() -> None:
    claims = ReleaseClaims(lambda _name: None)
    confined = Confinement(claims, {"prod.known"})
    claims.claim(AppId("prod", "shop"))
    module = ModuleId("web")
    claims.claim(module)
    assert confined(Owner("shop", "prod"))
    assert confined(Owner("known", "prod"))  # the release is not claimed yet
    assert not confined(Owner("stranger", "prod"))
    assert not confined(Owner(module.release, module.namespace))
    confined.reaches_cluster = lambda namespace: namespace == "prod"
    assert not confined(Owner("shop", "prod"))
