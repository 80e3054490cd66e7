"""The tag that a resource's version, range or channel selects at present, for builds without a daemon."""

from pathlib import Path

import pytest

from tests.packages.support.registry_contract import push
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.errors import ArtifactNotFoundError
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.runtime.repositories.followed_tag import followed_tag
from wharfinger.runtime.resources.resources import read_module


async def tag_of(layout: OciLayout, spec: JsonObject) -> str:
    return await followed_tag(layout, "web", read_module({"metadata": {"name": "web"}, "spec": spec}))


async def test_the_tag_is_the_newest_match_for_every_policy(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    for tag in ("1.0.0", "1.1.0_build", "2.0.0", "stable"):
        await push(layout, tag, repository="web")
    manual: JsonObject = {"update": {"mode": "manual"}}
    assert await tag_of(layout, {"versionRange": "^1", **manual}) == "1.1.0_build"
    assert await tag_of(layout, {"versionRange": ">=0"}) == "2.0.0"
    assert await tag_of(layout, {"releaseChannel": "stable"}) == "stable"
    assert await tag_of(layout, {"packageVersion": "7.0.0"}) == "7.0.0"
    with pytest.raises(
        ArtifactNotFoundError, match=r"no version of web in repository default is in range \^7: the newest version is"
    ):
        await tag_of(layout, {"versionRange": "^7"})
