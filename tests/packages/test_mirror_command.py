"""The command ``wharfinger repository mirror`` as a user runs it."""

from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import chart
from tests.packages.support.registry_contract import push
from tests.registry_server import open_registry_server
from wharfinger.__main__ import main
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_package

SETTINGS = Path(__file__).parents[1] / "charts" / "tested" / "values.schema.json"


async def run(*arguments: str) -> int:
    return await trio.to_thread.run_sync(lambda: main(["repository", "mirror", *arguments]))


async def test_packages_are_mirrored_to_a_registry_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = await load_package(chart(tmp_path / "web", "web", "1.0.0"))
    pushed = await push_package(package, OciLayout(tmp_path / "one"), "web", "1.0.0")
    source, back = f"oci-layout:{tmp_path}/one", f"oci-layout:{tmp_path}/two"
    async with open_registry_server(tmp_path) as address:
        there = f"{address}/packages"
        assert await run(source, there, "--dry-run") == 0
        planned = capsys.readouterr().out.splitlines()
        assert planned[0].startswith(f"would copy web:1.0.0 {pushed.digest} ")
        assert planned[1].startswith("would copy 1 artifact, ")
        assert await run(source, there) == 0
        assert capsys.readouterr().out.splitlines()[1] == planned[1].replace("would copy", "copied")
        async with open_registry(address, scheme="http") as registry:
            assert await registry.resolve("packages/web", "1.0.0") == pushed
        assert await run(there, back) == 1
        assert "does not list its packages" in capsys.readouterr().err
        assert await run(there, back, "--package", "web") == 0
    assert await OciLayout(tmp_path / "two").resolve("web", "1.0.0") == pushed


async def test_images_of_rendered_manifests_are_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The chart has no annotation with its images, so the image is found by rendering the chart with the given settings."""
    async with open_registry_server(tmp_path) as address:
        pod = (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
            'spec: {containers: [{name: app, image: "{{ required "give a registry" .Values.registry }}/team/app:1"}]}\n'
        )
        about = "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=1.21.0'\n"
        files = {"templates/pod.yaml": pod, "Chart.yaml": about}
        package = await load_package(chart(tmp_path / "web", "web", "1.0.0", files))
        await push_package(package, OciLayout(tmp_path / "one"), "web", "1.0.0")
        source, target = f"oci-layout:{tmp_path}/one", f"oci-layout:{tmp_path}/two"
        assert await run(source, target, "--plain-http") == 1
        said = capsys.readouterr().err.splitlines()
        assert said[0].startswith("error: web:1.0.0 was copied without its images, which are not known: ")
        assert "give a registry" in said[0]
        assert said[1].startswith("error: 1 package without images; give settings with --settings NAME=FILE, ")
        assert await run(source, target, "--plain-http", "--no-images") == 0
        async with open_registry(address, scheme="http") as registry:
            image = await push(registry, "1", b"app", "team/app")
        settings = tmp_path / "settings.yaml"
        settings.write_text(f"registry: {address}\n")
        capsys.readouterr()
        assert await run(source, target, "--settings", f"web={settings}", "--kubernetes-version", "1.20.0") == 1
        assert "kubeVersion: >=1.21.0" in capsys.readouterr().err
        assert await run(source, target, "--settings", f"web={settings}", "--kubernetes-version", "1.33.0") == 0
        assert f"copied     {address}/team/app:1 {image.digest}" in capsys.readouterr().out
    copied = await OciLayout(tmp_path / "two").resolve(f"images/127.0.0.1_{address.port}/team/app", "1")
    assert copied == image


async def test_images_that_were_not_copied_are_listed_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The package ``disk`` has a custom resource whose ``spec.image`` is no container image, so copying it fails. The image of
    the other package is still copied.
    """
    async with open_registry_server(tmp_path) as address:
        guess = f"apiVersion: example.com/v1\nkind: Disk\nmetadata: {{name: a}}\nspec: {{image: '{address}/disks/ubuntu'}}\n"
        pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{image: '{address}/team/app:1'}}]}}\n"
        for name, template in (("disk", guess), ("web", pod)):
            package = await load_package(chart(tmp_path / name, name, "1.0.0", {"templates/a.yaml": template}))
            await push_package(package, OciLayout(tmp_path / "one"), name, "1.0.0")
        async with open_registry(address, scheme="http") as registry:
            await push(registry, "1", b"app", "team/app")
        assert await run(f"oci-layout:{tmp_path}/one", f"oci-layout:{tmp_path}/two", "--plain-http") == 1
    said = capsys.readouterr()
    assert f"failed     {address}/disks/ubuntu:latest" in said.out
    assert f"copied     {address}/team/app:1" in said.out
    first, last = said.err.splitlines()
    assert first.startswith(f"error: the image {address}/disks/ubuntu:latest was not copied: ")
    assert "not found (404)" in first
    assert last == "error: 1 image not copied; correct the images in Chart.yaml, or use --no-images"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.example/b", "a.example/c", "--package", "Web"), "expected NAME or NAME:TAG, such as web:1.2.0"),
        (("a.example/b", "a.example/c", "--settings", "web"), "expected NAME=FILE, such as web=web-settings.yaml"),
        (("a.example/b", "a.example/c", "--settings", "web=/none"), "reading /none"),
        (
            ("a.example/b", "oci-layout:two", "--package", "web", "--settings", f"wbe={SETTINGS}"),
            "--settings wbe=…: no package wbe is to be copied; correct the name",
        ),
        (
            ("a.example/b", "oci-layout:two", "--settings", f"web={SETTINGS}", "--settings", f"web={SETTINGS}"),
            "--settings web=…: given twice",
        ),
        (
            ("a", "a.example/c", "--package", "web"),
            "expected host/path[:tag], such as registry.example/charts/web:1.0.0, found no repository",
        ),
        (("oci-layout:/none", "oci-layout:/none2", "--package", "web"), "not found"),
    ],
)
async def test_errors_are_reported_in_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(*arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
