"""The contract of renderers. The tests use the implementation only through the protocol."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import WEB_SERVICE, tool
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.errors import PackageError, RenderError
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.renderer import Rendered, Renderer, RenderRequest, hook_events, is_test

ASKED = RenderRequest(WEB_SERVICE, "sha256:x", "web", "prod", {}, "v1.31.0", (), is_upgrade=False)


@pytest.mark.parametrize("program", ["helm", "helm3"])
async def test_equal_requests_render_equally_and_changed_ones_differently(program: str, tmp_path: Path) -> None:
    renderer: Renderer = HelmRenderer(tool(program), tmp_path)
    rendered = await renderer.render(ASKED)
    assert await renderer.render(ASKED) == rendered
    for changed in (
        replace(ASKED, values={"replicas": 2}),
        replace(ASKED, release="other"),
        replace(ASKED, namespace="x"),
    ):
        assert await renderer.render(changed) != rendered


async def test_a_failed_render_is_a_package_error(tmp_path: Path) -> None:
    renderer: Renderer = HelmRenderer(tool("helm"), tmp_path)
    with pytest.raises(RenderError) as caught:
        await renderer.render(replace(ASKED, values={"replicas": "many"}))
    assert isinstance(caught.value, PackageError)
    assert not caught.value.transient
    assert "replicas" in str(caught.value)


def hook(events: str) -> JsonObject:
    return {"kind": "Pod", "metadata": {"annotations": {"helm.sh/hook": events}}}


@pytest.mark.parametrize(
    ("events", "read", "test"),
    [
        ("test", ("test",), True),
        ("test-success", ("test-success",), True),
        (" test , test-success,", ("test", "test-success"), True),
        ("pre-install,post-upgrade", ("pre-install", "post-upgrade"), False),
        ("post-install,test", ("post-install", "test"), False),
        ("test-failure", ("test-failure",), False),
        ("", (), False),
    ],
)
def test_events_of_hooks_are_read(events: str, read: tuple[str, ...], test: bool) -> None:
    assert hook_events(hook(events)) == read
    assert is_test(hook(events)) is test


@pytest.mark.parametrize("obj", [{}, {"metadata": 1}, {"metadata": {"annotations": {"helm.sh/hook": 1}}}])
def test_objects_without_a_hook_annotation_have_no_events(obj: JsonObject) -> None:
    assert hook_events(obj) == ()
    assert not is_test(obj)


def test_test_hooks_are_listed_among_the_hooks() -> None:
    found = Rendered((), (hook("pre-install"), hook("test"), hook("post-install,test")), (), "")
    assert found.tests == (found.hooks[1],)
