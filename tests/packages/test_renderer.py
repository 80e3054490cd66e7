"""What the seam to rendering promises, held against its implementation through the protocol alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.charts import WEB_SERVICE, tool
from wharfinger.packages.errors import PackageError, RenderError
from wharfinger.packages.helm_renderer import HelmRenderer
from wharfinger.packages.renderer import Renderer, RenderRequest

ASKED = RenderRequest(WEB_SERVICE, "sha256:x", "web", "prod", {}, "v1.31.0", (), is_upgrade=False)


@pytest.mark.parametrize("program", ["helm", "helm3"])
async def test_the_same_request_gives_the_same_and_a_changed_one_does_not(program: str, tmp_path: Path) -> None:
    renderer: Renderer = HelmRenderer(tool(program), tmp_path)
    rendered = await renderer.render(ASKED)
    assert await renderer.render(ASKED) == rendered
    for changed in (
        replace(ASKED, values={"replicas": 2}),
        replace(ASKED, release="other"),
        replace(ASKED, namespace="x"),
    ):
        assert await renderer.render(changed) != rendered


async def test_it_fails_with_a_package_error(tmp_path: Path) -> None:
    renderer: Renderer = HelmRenderer(tool("helm"), tmp_path)
    with pytest.raises(RenderError) as caught:
        await renderer.render(replace(ASKED, values={"replicas": "many"}))
    assert isinstance(caught.value, PackageError)
    assert not caught.value.transient
    assert "replicas" in str(caught.value)
