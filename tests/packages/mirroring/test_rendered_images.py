"""Images in manifests that the real helm and kubectl render, and images in objects of any kind."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.errors import ArtifactError, RenderError
from wharfinger.packages.mirroring.rendered_images import OWN_REGISTRY, images_in, open_rendered_images
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.packages.settings.values import SettingsError

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}{more}}}
spec:
  containers: [{{name: app, image: "{image}"}}]
"""
HOOK = POD.format(name="check", more=', annotations: {"helm.sh/hook": test}', image="registry.example/check:1")
TEMPLATE = POD.format(name="web", more="", image="{{ .Values.image.repository }}:{{ .Chart.Version }}")
VALUES = "image: {repository: registry.example/web}\n"


async def found(folder: Path, settings: Mapping[str, JsonObject] | None = None, kubernetes: str = "") -> list[str]:
    """Push a package to a layout, and return its images."""
    layout = OciLayout(folder.parent / "layout")
    pushed = await push_package(await load_package(folder, "web"), layout, "web", "1.0.0")
    manifest = await layout.manifest("web", pushed.digest)
    async with open_rendered_images(settings or {}, kubernetes) as rendered:
        return [str(each) for each in await rendered.find(layout, "web", "web", manifest)]


async def test_images_of_a_chart_are_found_by_rendering_with_its_settings(tmp_path: Path) -> None:
    files = {"templates/web.yaml": TEMPLATE, "templates/test.yaml": HOOK, "values.yaml": VALUES}
    made = chart(tmp_path / "web", "web", "1.0.0", files)
    assert await found(made) == ["registry.example/web:1.0.0", "registry.example/check:1"]
    settings: JsonObject = {"image": {"repository": "mirror.example/web"}}
    assert (await found(made, {"web": settings, "other": {}}))[0] == "mirror.example/web:1.0.0"


async def test_plain_manifests_are_searched_for_images(tmp_path: Path) -> None:
    manifest = POD.format(name="web", more="", image="registry.example/plain@sha256:" + "a" * 64)
    made = write(tmp_path / "web", {"web.yaml": manifest})
    assert await found(made) == ["registry.example/plain@sha256:" + "a" * 64]


async def test_a_package_without_a_chart_has_no_images(tmp_path: Path) -> None:
    made = write(tmp_path / "web", {"package.yaml": "apiVersion: v1\ntype: Application\nname: web\nversion: 1.0.0\n"})
    assert await found(made) == []


async def test_a_library_chart_has_no_images(tmp_path: Path) -> None:
    about = "apiVersion: v2\nname: web\nversion: 1.0.0\ntype: library\n"
    made = chart(
        tmp_path / "web", "web", "1.0.0", {"Chart.yaml": about, "templates/_a.tpl": '{{ define "a" }}{{ end }}'}
    )
    assert await found(made) == []


async def test_a_download_is_deleted_after_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that mirrors all versions of all packages must not fill the disk with temporary files."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    layout = OciLayout(tmp_path / "layout")
    package = await load_package(chart(tmp_path / "web", "web", "1.0.0", {"values.yaml": VALUES}), "web")
    manifest = await layout.manifest("web", (await push_package(package, layout, "web", "1.0.0")).digest)
    async with open_rendered_images({}) as rendered:
        await rendered.find(layout, "web", "web", manifest)
        assert [each for each in (tmp_path / "scratch").rglob("*") if each.is_file()] == []
    assert list((tmp_path / "scratch").iterdir()) == []


async def test_a_chart_that_cannot_be_rendered_is_an_error_with_the_reason(tmp_path: Path) -> None:
    template = '{{ required "host is required" .Values.host }}'
    made = chart(tmp_path / "web", "web", "1.0.0", {"templates/web.yaml": template})
    with pytest.raises(RenderError, match="host is required"):
        await found(made)
    newer = chart(
        tmp_path / "newer",
        "web",
        "1.0.0",
        {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=1.99'\n"},
    )
    with pytest.raises(RenderError, match="kubeVersion"):
        await found(newer)
    assert await found(newer, kubernetes="1.99.0") == []


async def test_settings_refused_by_the_schema_are_an_error(tmp_path: Path) -> None:
    schema = '{"type":"object","required":["host"],"properties":{"host":{"type":"string"}}}'
    made = chart(tmp_path / "web", "web", "1.0.0", {"values.schema.json": schema})
    with pytest.raises((RenderError, SettingsError), match="host"):
        await found(made)


async def test_a_missing_helm_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RenderError, match="helm is not on PATH; install it"):
        await found(chart(tmp_path / "web", "web", "1.0.0"))


def spec(**fields: JsonValue) -> JsonObject:
    return {"apiVersion": "example.com/v1", "kind": "Any", "spec": dict(fields)}


def test_images_are_found_in_all_pod_specifications() -> None:
    pod: JsonObject = {
        "initContainers": [{"image": "one"}],
        "containers": [{"image": "two:2"}, {"name": "none"}, {"image": "two:2"}],
        "ephemeralContainers": [{"image": "a.example/three"}],
        "volumes": [{"image": {"reference": "a.example/volume:1"}}, {"emptyDir": {}}],
    }
    objects = [
        spec(template={"spec": pod}),
        spec(jobTemplate={"spec": {"template": {"spec": {"containers": [{"image": "four"}]}}}}),
        spec(items=[{"containers": [{"image": f"{OWN_REGISTRY}@sha256:{'a' * 64}"}]}]),
        spec(containers="none", image="a.example/operand:7"),
        spec(image="/usr/share/disk.img"),
        spec(image="plain"),
        spec(image={"repository": "a.example/x"}),
    ]
    hub = "registry-1.docker.io/library"
    assert [str(each) for each in images_in(objects, "web")] == [
        f"{hub}/one:latest",
        f"{hub}/two:2",
        "a.example/three:latest",
        "a.example/volume:1",
        f"{hub}/four:latest",
        "a.example/operand:7",
    ]


def test_an_invalid_container_image_is_an_error() -> None:
    with pytest.raises(ArtifactError, match=r"web 1\.0: a container has the image 'A B'"):
        images_in([spec(containers=[{"image": "A B"}])], "web 1.0")


def test_an_image_in_the_own_registry_without_a_digest_is_refused() -> None:
    """During the search for images, templates get a placeholder as the package's own registry, so the image could not be
    downloaded.
    """
    with pytest.raises(
        ArtifactError, match="the image '/side:1' in the package's own registry, whose digest is known only"
    ):
        images_in([spec(containers=[{"image": f"{OWN_REGISTRY}/side:1"}])], "web 1.0")
    assert images_in([spec(image=f"{OWN_REGISTRY}/side:1")], "web 1.0") == ()
