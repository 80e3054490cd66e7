from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.special_endpoints.table import ANSWERERS


def test_answerers_are_of_what_there_is() -> None:
    known = {kind.group_kind for kind in BUILTIN_KINDS}
    below = {f"{kind.group_kind}/{item.name}" for kind in BUILTIN_KINDS for item in kind.versions[0].subresources}

    assert set(ANSWERERS) <= known | below
