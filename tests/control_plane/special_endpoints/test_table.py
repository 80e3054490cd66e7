from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.special_endpoints.table import ENDPOINTS


def test_endpoints_belong_to_existing_kinds_and_subresources() -> None:
    known = {kind.group_kind for kind in BUILTIN_KINDS}
    below = {f"{kind.group_kind}/{item.name}" for kind in BUILTIN_KINDS for item in kind.versions[0].subresources}

    assert set(ENDPOINTS) <= known | below
