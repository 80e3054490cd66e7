"""Release notes: they are rendered in the same run as the chart, and equal those that Helm would store."""

import json
from pathlib import Path

import pytest

from tests.packages.support.charts import WEB_SERVICE, chart, helm, tool
from tests.packages.support.renders import ASKED
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, find_str
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.notes_template import TEMPLATE_FILE, has_notes, is_notes, read_notes
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest

NOTES = """\

{{- $made := printf "%s\\n" .Release.Name }}
1. {{ $made }} <b> & "quoted" 'too' \u2028 \x7f emoji \U0001f6a2 --- # Source: x
---
# Source: web/templates/else.yaml
   {{ .Values.nothing }} {{ include "web.name" . }}

"""
FILES = {
    "templates/NOTES.txt": NOTES,
    "templates/_helpers.tpl": '{{ define "web.name" }}named{{ end }}',
    "templates/deep/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: deep}\n",
    "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
    "charts/db/templates/NOTES.txt": "of the sub-chart",
    "values.yaml": "a: 1\n",
}
MADE: JsonObject = {"apiVersion": "v2", "name": "web", "version": "1.2.3"}


@pytest.fixture(params=["helm", "helm3"])
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def asked(folder: Path, *, package: bool = False) -> RenderRequest:
    return RenderRequest(
        folder, "", "web", "prod", {}, "v1.31.0", (), is_upgrade=False, chart_file=MADE if package else None
    )


async def rendered(program: str, folder: Path, tmp_path: Path, *, package: bool = False) -> Rendered:
    return await HelmRenderer(tool(program), tmp_path / "scratch").render(asked(folder, package=package))


def stored_notes(folder: Path, home: Path) -> str:
    """Return the notes that Helm 4 would store in its record. Helm 3 would need a cluster for this."""
    said = helm("helm", "install", "web", str(folder), "-n", "prod", "--dry-run=client", "-o", "json", home=home)
    release = as_object(
        decode_json(said[said.index("{") : said.rindex("}") + 1], max_bytes=10**7, what="release"), "release"
    )
    return find_str(release, "info", "notes")


async def test_notes_equal_those_that_helm_stores(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=FILES)
    found = await rendered(program, folder, tmp_path)
    assert found.notes == stored_notes(folder, tmp_path)
    assert "<no value>" not in found.notes
    assert "named" in found.notes
    without = chart(tmp_path / "without", files={name: text for name, text in FILES.items() if "NOTES" not in name})
    assert found.objects == (plain := await rendered(program, without, tmp_path)).objects
    assert (found.hooks, found.crds, found.manifest) == (plain.hooks, plain.crds, plain.manifest)
    assert plain.notes == ""


async def test_notes_of_a_package_equal_those_that_helm_stores(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=FILES)
    assert (await rendered(program, folder, tmp_path, package=True)).notes == stored_notes(folder, tmp_path)


async def test_notes_of_the_example_equal_those_that_helm_stores(program: str, tmp_path: Path) -> None:
    found = await HelmRenderer(tool(program), tmp_path / "scratch").render(ASKED)
    assert found.notes == stored_notes(WEB_SERVICE, tmp_path).replace("default", "prod")
    assert found.notes


async def test_notes_of_a_linked_chart_are_rendered(program: str, tmp_path: Path) -> None:
    folder = chart(
        tmp_path / "chart", files={"templates/NOTES.txt": "text", "crds/a.yaml": "apiVersion: v1\nkind: K\n"}
    )
    linked = tmp_path / "linked"
    linked.symlink_to(folder)
    found = await rendered(program, linked, tmp_path)
    assert (found.notes, len(found.crds), len(found.objects)) == ("text", 1, 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "ignored", ["NOTES.txt", "*.txt", "templates/NOTES.txt", TEMPLATE_FILE.replace("!!", "??"), "*notes.yaml"]
)
async def test_ignored_notes_are_not_rendered(ignored: str, program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={**FILES, ".helmignore": ignored})
    found = await rendered(program, folder, tmp_path)
    assert found.notes == ""
    assert [obj["kind"] for obj in found.objects] == ["Secret", "ConfigMap"]


async def test_failed_notes_fail_the_render_and_are_named(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={"templates/NOTES.txt": '{{ fail "not so" }}'})
    with pytest.raises(RenderError, match=r"web/templates/NOTES\.txt.*not so") as caught:
        await rendered(program, folder, tmp_path)
    assert TEMPLATE_FILE not in str(caught.value)


async def test_notes_that_change_values_change_no_object(program: str, tmp_path: Path) -> None:
    """The release notes change a value at each render. If the notes were rendered twice, other templates would see the change
    twice.
    """
    count = '{{ $_ := set .Values "n" (add1 (.Values.n | default 0)) }}'
    files = {"templates/NOTES.txt": count}
    for name in ("!a", "0", "Z", "a"):
        files[f"templates/{name}.yaml"] = (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, n: {{ .Values.n | default 0 }}}\n"
        )
    folder = chart(tmp_path / "chart", files=files)
    plain = helm(program, "template", "web", str(folder), "-n", "prod", home=tmp_path)
    found = await rendered(program, folder, tmp_path)
    assert found.manifest.split() == plain.split()


async def test_a_chart_file_with_the_name_of_the_notes_template_is_replaced(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={**FILES, f"templates/{TEMPLATE_FILE}": "not: ours"})
    assert "named" in (await rendered(program, folder, tmp_path)).notes


async def test_a_chart_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.packages.rendering.added_templates.MAX_FILES", 2)
    folder = chart(tmp_path / "chart", files=FILES)
    with pytest.raises(RenderError, match="more than 2 files"):
        await rendered("helm", folder, tmp_path)


async def test_a_full_disk_is_a_transient_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path, __: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wharfinger.packages.rendering.helm_renderer.link_chart", full)
    with pytest.raises(
        RenderError, match="folder for helm cannot be made: No space left on device; check the disk"
    ) as caught:
        await rendered("helm", chart(tmp_path / "chart", files=FILES), tmp_path)
    assert caught.value.transient


def test_existing_and_not_ignored_notes_are_detected(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart")
    assert not has_notes(folder)
    assert not has_notes(tmp_path / "absent")
    (folder / "templates" / "NOTES.txt").write_text("x")
    assert has_notes(folder)
    for text, told in (("", True), ("templates/", False), ("**", False), ("docs\n", True), ("\xff", True)):
        (folder / ".helmignore").write_text(text)
        assert has_notes(folder) is told
    (folder / ".helmignore").unlink()
    (folder / ".helmignore").mkdir()
    assert not has_notes(folder)


@pytest.mark.parametrize("data", [{}, {"notes": 1}, {"notes": "?"}, {"notes": "/w=="}, 1])
def test_other_objects_have_no_notes(data: object) -> None:
    obj = as_object(decode_json(json.dumps({"data": data}), max_bytes=1000, what="x"), "x")
    assert read_notes(obj) == ""


def test_only_the_chart_itself_has_notes() -> None:
    assert is_notes(f"web/templates/{TEMPLATE_FILE}")
    assert not is_notes(f"web/charts/db/templates/{TEMPLATE_FILE}")
    assert not is_notes("web/templates/NOTES.txt")
    assert not is_notes("")
