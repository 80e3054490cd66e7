"""Renders with the real helm 4 and helm 3."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import WEB_SERVICE, chart, helm, tool, write
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.helm_command import MAX_API_BYTES
from wharfinger.packages.rendering.helm_renderer import HelmRenderer, RenderLimits
from wharfinger.packages.rendering.renderer import RenderRequest
from wharfinger.process.ledger import open_ledger

CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s}\n"
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations:
    "helm.sh/hook": {hook}
    "helm.sh/hook-weight": "{weight}"
"""
REPORT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: report}
data:
  release: {{ .Release | toJson | quote }}
  kube: {{ .Capabilities.KubeVersion.Version }}
  here: {{ .Capabilities.APIVersions.Has "wharf.example/v1/Pier" | quote }}
  absent: {{ .Capabilities.APIVersions.Has "wharf.example/v2" | quote }}
  values: {{ .Values | toJson | quote }}
  environment: {{ (lookup "v1" "Namespace" "" "") | toJson | quote }}
"""


def request(
    folder: Path,
    values: JsonObject | None = None,
    *,
    release: str = "web",
    namespace: str = "prod",
    kube_version: str = "v1.31.4",
    api_versions: tuple[str, ...] = ("wharf.example/v1/Pier", "wharf.example/v1"),
    is_upgrade: bool = False,
    chart_file: JsonObject | None = None,
) -> RenderRequest:
    return RenderRequest(
        folder, "", release, namespace, values or {}, kube_version, api_versions, is_upgrade, chart_file
    )


@pytest.fixture(params=["helm", "helm3"])
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def renderer(program: str, tmp_path: Path) -> HelmRenderer:
    return HelmRenderer(tool(program), tmp_path / "scratch")


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(
        "wharfinger.packages.rendering.helm_renderer.REMOVE_S", 300.0
    )  # A busy machine may need longer than a daemon waits.
    yield
    scratch = tmp_path / "scratch"
    assert not scratch.exists() or list(scratch.iterdir()) == []


def kinds(objects: tuple[JsonObject, ...]) -> list[JsonValue]:
    return [obj["kind"] for obj in objects]


def names(objects: tuple[JsonObject, ...]) -> list[JsonValue]:
    return [find(obj, "metadata", "name") for obj in objects]


async def test_the_example_chart_is_rendered_as_by_helm(renderer: HelmRenderer, program: str, tmp_path: Path) -> None:
    rendered = await renderer.render(request(WEB_SERVICE, {"replicas": 3, "message": "moin"}))
    assert kinds(rendered.objects) == ["ServiceAccount", "ConfigMap", "Service", "Deployment"]
    assert (rendered.crds, rendered.hooks) == ((), ())
    assert find(rendered.objects[3], "spec", "replicas") == 3
    assert {find(obj, "metadata", "namespace") for obj in rendered.objects} == {"prod"}
    plain = helm(
        program, "template", "web", str(WEB_SERVICE), "-n", "prod", "--set=replicas=3,message=moin", home=tmp_path
    )
    normal = [line for line in plain.splitlines() if line.strip()]
    assert [line for line in rendered.manifest.splitlines() if line.strip()] == normal


async def test_crds_hooks_and_objects_are_distinguished(renderer: HelmRenderer, tmp_path: Path) -> None:
    folder = chart(
        tmp_path / "chart",
        files={
            "crds/b.yaml": "---\n" + CRD % "b1" + "---\n" + CRD % "b2",
            "crds/a.yaml": CRD % "a",
            "templates/crds/c.yaml": CRD % "c",
            "templates/late.yaml": HOOK.format(name="late", hook="post-install", weight=1),
            "templates/early.yaml": HOOK.format(name="early", hook="pre-install,pre-upgrade", weight=-5),
            "templates/check.yaml": HOOK.format(name="check", hook="test", weight=0),
            "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
            "charts/db/crds/d.yaml": CRD % "d",
            "charts/db/templates/e.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: e}\n",
        },
    )
    rendered = await renderer.render(request(folder))
    assert sorted(map(str, names(rendered.crds))) == ["a", "b1", "b2", "d"]
    assert sorted(map(str, names(rendered.hooks))) == ["check", "early", "late"]
    assert names(rendered.objects) == ["e", "web", "c"]
    assert "crds/a.yaml" not in rendered.manifest
    assert "early" not in rendered.manifest
    assert rendered.manifest.count("\n# Source: ") == 3


async def test_templates_see_values_release_and_capabilities(renderer: HelmRenderer, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={"templates/report.yaml": REPORT})
    values: JsonObject = {
        "text": "emoji \U0001f6a2, \x7f, \u2028, \ufeff, 'quotes\", --- \n# Source: x\n{{ .Release.Name }}",
        "list": [1, 1.5, True, None, "on", "0777", "2026-01-01"],
        "": {"é": "y", "k" * 1500: 1},
    }
    for is_upgrade in (False, True):
        rendered = await renderer.render(request(folder, values, is_upgrade=is_upgrade))
        report = next(obj for obj in rendered.objects if find(obj, "metadata", "name") == "report")["data"]
        assert isinstance(report, dict)
        release = json.loads(str(report["release"]))
        assert (release["Name"], release["Namespace"], release["IsUpgrade"]) == ("web", "prod", is_upgrade)
        assert (report["kube"], report["here"], report["absent"]) == ("v1.31.4", "true", "false")
        given = json.loads(str(report["values"]))
        assert {key: given[key] for key in values} == values
        assert report["environment"] == "{}"


async def test_equal_requests_render_equal_objects(renderer: HelmRenderer) -> None:
    asked = request(WEB_SERVICE)
    assert await renderer.render(asked) == await renderer.render(asked)


async def test_a_read_only_chart_is_rendered_and_not_modified(renderer: HelmRenderer, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert names((await renderer.render(request(folder))).objects) == ["web"]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    for path in (folder, folder / "templates"):
        path.chmod(0o755)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("templates/bad.yaml", "{{ .Values.a.b.c }}", "web/templates/bad.yaml"),
        ("templates/bad.yaml", '{{ fail "no pier 7" }}', "no pier 7"),
        ("templates/bad.yaml", '{{ required "give a berth" .Values.berth }}', "give a berth"),
        ("templates/bad.yaml", "{{ .Values.a", "bad.yaml"),
        ("templates/bad.yaml", "a: b: c", "bad.yaml"),
        ("templates/bad.yaml", "a: b", "bad.yaml"),
        ("values.yaml", "a: [", "values.yaml"),
        ("values.schema.json", '{"required":["berth"]}', "berth"),
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=1.99'\n", "1.99"),
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0}]\n", "db"),
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\ntype: library\n", "library"),
        ("Chart.yaml", "", "required|missing"),
    ],
)
async def test_errors_of_helm_are_reported_in_its_words(
    name: str, text: str, says: str, renderer: HelmRenderer, tmp_path: Path
) -> None:
    folder = write(chart(tmp_path / "chart"), {name: text})
    with pytest.raises(RenderError, match=says) as caught:
        await renderer.render(request(folder))
    message = str(caught.value)
    assert not caught.value.transient
    assert str(tmp_path / "scratch") not in message
    assert len(message) < 1200
    assert "\n" not in message
    assert "--debug" not in message


PACKAGE = {
    "package.yaml": "type: Application",
    "values.yaml": "removed: by a hook",
    "values.schema.json": '{"required": ["told"]}',
    ".helmignore": "templates/ignored.yaml\ncrds\nhooks\n",
    "templates/report.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: report}
data:
  values: {{ .Values | toJson | quote }}
  chart: {{ .Chart.Name }}-{{ .Chart.Version }}
  file: {{ .Files.Get "files/a.txt" | quote }}
  hook: {{ .Files.Get "hooks/a.sh" | quote }}
  sub: {{ include "web.sub" . }}
""",
    "templates/sub/_helpers.tpl": '{{ define "web.sub" }}found{{ end }}',
    "templates/ignored.yaml": "not: an object",
    "templates/job.yaml": HOOK.format(name="early", hook="pre-install", weight=0),
    "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
    "charts/db/templates/e.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: e}\n",
    "files/a.txt": "text",
    "hooks/a.sh": "#!/bin/sh\n",
    "crds/a.yaml": CRD % "a",
    "crds/deep/b.yaml": CRD % "b",
    "crds/doc-ru-a.yaml": "spec: in another language",
    "enabled": "#!/bin/sh\n",
}
MADE: JsonObject = {"apiVersion": "v2", "name": "web", "version": "0.2.0"}


async def test_a_package_without_a_chart_file_is_rendered(renderer: HelmRenderer, tmp_path: Path) -> None:
    package = write(tmp_path / "package", PACKAGE)
    with (package / "hooks" / "program").open("wb") as program:
        program.truncate(200 * 1024 * 1024)
    rendered = await renderer.render(request(package, {"told": 1}, chart_file=MADE))
    assert sorted(map(str, names(rendered.crds))) == ["a", "b"]
    assert names(rendered.hooks) == ["early"]
    assert names(rendered.objects) == ["e", "report"]
    assert "# Source: web/templates/report.yaml" in rendered.manifest
    report = rendered.objects[1]["data"]
    assert isinstance(report, dict)
    assert {key: report[key] for key in ("chart", "file", "hook", "sub")} == {
        "chart": "web-0.2.0",
        "file": "text",
        "hook": "",
        "sub": "found",
    }
    assert "removed" not in json.loads(str(report["values"]))


async def test_a_package_with_a_chart_file_is_rendered_under_its_name(renderer: HelmRenderer, tmp_path: Path) -> None:
    files = PACKAGE | {"Chart.yaml": "apiVersion: v2\nname: own\nversion: 7.0.0\n"}
    write(tmp_path / "package", files)
    linked = tmp_path / "deployed"
    linked.symlink_to("package")
    own: JsonObject = {"apiVersion": "v2", "name": "own", "version": "7.0.0"}
    rendered = await renderer.render(request(linked, {"told": 1}, chart_file=own))
    assert find(rendered.objects[1], "data", "chart") == "own-7.0.0"
    assert "# Source: own/templates/report.yaml" in rendered.manifest


async def test_a_package_with_only_crds_is_rendered(renderer: HelmRenderer, tmp_path: Path) -> None:
    package = write(tmp_path / "package", {"crds/a.yaml": CRD % "a"})
    rendered = await renderer.render(request(package, chart_file=MADE))
    assert (names(rendered.crds), rendered.hooks, rendered.objects, rendered.manifest) == (["a"], (), (), "")


async def test_errors_in_a_package_are_reported_without_local_paths(renderer: HelmRenderer, tmp_path: Path) -> None:
    package = write(tmp_path / "package", PACKAGE)
    with pytest.raises(RenderError, match="told") as caught:
        await renderer.render(request(package, {}, chart_file=MADE))
    assert not caught.value.transient
    assert str(tmp_path) not in str(caught.value)
    write(package, {"templates/bad.yaml": "{{ .Values.a.b.c }}"})
    with pytest.raises(RenderError, match=r"web/templates/bad\.yaml") as caught:
        await renderer.render(request(package, {"told": 1}, chart_file=MADE))
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(RenderError, match="folder is missing; install the package again") as caught:
        await renderer.render(request(tmp_path / "gone", {}, chart_file=MADE))


async def test_a_missing_chart_is_refused(renderer: HelmRenderer, tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="chart") as caught:
        await renderer.render(request(tmp_path / "absent"))
    assert not caught.value.transient


async def test_a_chart_cannot_use_the_network(renderer: HelmRenderer, tmp_path: Path) -> None:
    schema = '{"$ref": "http://registry.invalid/schema.json"}'
    folder = chart(tmp_path / "chart", files={"values.schema.json": schema})
    with pytest.raises(RenderError) as caught:
        await renderer.render(request(folder))
    assert "lookup registry.invalid" not in str(caught.value)


async def test_long_lists_of_api_versions_are_passed_up_to_a_limit(renderer: HelmRenderer, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={"templates/report.yaml": REPORT})
    versions = tuple(f"group{number}.example.internal/v1/SomeKindOfThing{number}" for number in range(3_000))
    rendered = await renderer.render(request(folder, api_versions=(*versions, "wharf.example/v2")))
    assert "true" in [find(obj, "data", "absent") for obj in rendered.objects]
    with pytest.raises(RenderError, match="more than helm accepts"):
        await renderer.render(request(folder, api_versions=tuple(f"{name}{'x' * 200}" for name in versions)))
    assert MAX_API_BYTES < 2**20


@pytest.mark.parametrize(
    "asked",
    [
        request(WEB_SERVICE, release=""),
        request(WEB_SERVICE, release="--debug"),
        request(WEB_SERVICE, release="Web"),
        request(WEB_SERVICE, release="a" * 54),
        request(WEB_SERVICE, release="a\nb"),
        request(WEB_SERVICE, namespace="-x"),
        request(WEB_SERVICE, namespace="a" * 64),
        request(WEB_SERVICE, kube_version="latest"),
        request(WEB_SERVICE, kube_version="1.2.3 --set=a=b"),
        request(WEB_SERVICE, api_versions=("v1,v2",)),
        request(WEB_SERVICE, api_versions=("--post-renderer",)),
        request(WEB_SERVICE, {"a": float("nan")}),
    ],
)
async def test_invalid_requests_are_refused_before_helm_runs(asked: RenderRequest, tmp_path: Path) -> None:
    renderer = HelmRenderer(Path("/nonexistent/helm"), tmp_path / "scratch")
    with pytest.raises(RenderError) as caught:
        await renderer.render(asked)
    assert "/nonexistent/helm" not in str(caught.value)
    assert not caught.value.transient


async def test_oversized_values_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.packages.rendering.helm_renderer.MAX_VALUES", 10)
    with pytest.raises(RenderError, match="over the limit of 10"):
        await HelmRenderer(tool("helm"), tmp_path / "scratch").render(request(WEB_SERVICE, {"a": "x" * 20}))


async def test_oversized_output_is_refused(program: str, tmp_path: Path) -> None:
    limited = HelmRenderer(tool(program), tmp_path / "scratch", limits=RenderLimits(output_bytes=1000))
    with pytest.raises(RenderError, match="more than 1000 bytes") as caught:
        await limited.render(request(WEB_SERVICE))
    assert not caught.value.transient


@pytest.mark.sampled
async def test_a_chart_that_exceeds_the_memory_limit_is_refused(program: str, tmp_path: Path) -> None:
    """The template tries to double a text forty times, which would make a terabyte."""
    doubling = '{{- $s := "x" -}}{{- range until 40 }}{{- $s = printf "%s%s" $s $s }}{{- end }}\na: {{ len $s }}\n'
    folder = chart(tmp_path / "web", files={"templates/bomb.yaml": doubling})
    limited = HelmRenderer(tool(program), tmp_path / "scratch", limits=RenderLimits(memory_bytes=512 * 1024**2))
    with pytest.raises(RenderError, match="release web: the chart takes more than 512 MiB of memory") as caught:
        await limited.render(request(folder))
    assert not caught.value.transient
    assert (await limited.render(request(WEB_SERVICE))).objects


@pytest.mark.sampled
async def test_garbage_of_a_large_chart_is_collected_before_the_limit(program: str, tmp_path: Path) -> None:
    """The chart retains 120 MB. With ``GOGC=400`` alone, Go would let the heap grow to 600 MB, which is more than the limit.
    ``GOMEMLIMIT`` makes the garbage collector start earlier.
    """
    keep = '{{- $all := list }}{{- range until 120 }}{{- $all = append $all (repeat 1000000 "x") }}{{- end }}'
    churn = '{{- range until 400 }}{{- $_ := repeat 2000000 "x" }}{{- end }}'
    text = f"{keep}{churn}\napiVersion: v1\nkind: A\nmetadata: {{name: a-{{{{ len $all }}}}}}\n"
    folder = chart(tmp_path / "web", files={"templates/churn.yaml": text})
    limited = HelmRenderer(tool(program), tmp_path / "scratch", limits=RenderLimits(memory_bytes=512 * 1024**2))
    assert names((await limited.render(request(folder))).objects) == ["web", "a-120"]


@pytest.mark.sampled
async def test_a_chart_that_retains_all_memory_fails_at_the_limit(program: str, tmp_path: Path) -> None:
    """The template retains one megabyte after another, even when the garbage collector already runs continuously."""
    hoard = '{{- $all := list }}{{- range until 2000 }}{{- $all = append $all (repeat 1000000 "x") }}{{- end }}\na: 1\n'
    folder = chart(tmp_path / "web", files={"templates/hoard.yaml": hoard})
    limited = HelmRenderer(tool(program), tmp_path / "scratch", limits=RenderLimits(memory_bytes=384 * 1024**2))
    with pytest.raises(RenderError, match="release web: the chart takes more than 384 MiB of memory") as caught:
        await limited.render(request(folder))
    assert not caught.value.transient


def script(folder: Path, text: str) -> Path:
    path = folder / "fake-helm"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


async def test_a_helm_that_times_out_is_killed(tmp_path: Path) -> None:
    limits = RenderLimits(wall_s=0.3)
    slow = HelmRenderer(script(tmp_path, "sleep 1000 & wait\n"), tmp_path / "scratch", limits=limits)
    with pytest.raises(RenderError, match=r"longer than 0\.3 s") as caught:
        await slow.render(request(WEB_SERVICE))
    assert caught.value.transient


@pytest.mark.parametrize(
    ("text", "says", "transient"),
    [
        ("kill -9 $$\n", "SIGKILL", True),
        ("exit 3\n", "exit status 3", False),
        ("printf '\\377\\376'\n", "not UTF-8", False),
    ],
)
async def test_failures_of_helm_are_transient_or_permanent(
    text: str, says: str, transient: bool, tmp_path: Path
) -> None:
    broken = HelmRenderer(script(tmp_path, text), tmp_path / "scratch")
    with pytest.raises(RenderError, match=says) as caught:
        await broken.render(request(WEB_SERVICE))
    assert caught.value.transient is transient


async def test_a_missing_helm_is_a_transient_error(tmp_path: Path) -> None:
    for name in ("absent", "not-executable"):
        (tmp_path / "not-executable").write_text("")
        with pytest.raises(RenderError, match=r"helm cannot be run: .*check --helm") as caught:
            await HelmRenderer(tmp_path / name, tmp_path / "scratch").render(request(WEB_SERVICE))
        assert caught.value.transient


async def test_values_are_not_readable_by_other_users(tmp_path: Path) -> None:
    look = 'for a in "$@"; do case $a in --values=*) stat -c "apiVersion: v%a" "${a#--values=}"; esac; done\n'
    look += (
        'echo "kind: K"; echo "env: |"; env | sed "s/^/  /"; echo "dir: \\"$(stat -c %a .)\\""; echo "args: $*" >&2\n'
    )
    rendered = await HelmRenderer(script(tmp_path, look), tmp_path / "scratch").render(
        request(WEB_SERVICE, {"password": "geheim"})
    )
    [seen] = rendered.objects
    assert seen["apiVersion"] == "v600"
    assert seen["dir"] == "700"
    environment = dict(line.split("=", 1) for line in str(seen["env"]).splitlines() if "=" in line)
    assert environment["KUBECONFIG"] == os.devnull
    scratch = str(tmp_path / "scratch")
    homes = {
        environment[name] for name in ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS")
    }
    assert all(home.startswith(scratch) for home in homes)
    assert "geheim" not in str(seen)


async def test_a_scratch_folder_that_cannot_be_created_is_a_transient_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RenderError, match="a folder to render in cannot be made") as caught:
        await HelmRenderer(tool("helm"), tmp_path / "file" / "scratch").render(request(WEB_SERVICE))
    assert caught.value.transient


@pytest.mark.parametrize("chart_file", [None, MADE])
async def test_a_cancelled_render_leaves_no_files(chart_file: JsonObject | None, tmp_path: Path) -> None:
    renderer = HelmRenderer(tool("helm"), tmp_path / "scratch")
    for steps in (0, 1, 2, 3, 5, 8, 20, 60, 200):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(renderer.render, request(WEB_SERVICE, chart_file=chart_file))
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        scratch = tmp_path / "scratch"
        assert not scratch.exists() or list(scratch.iterdir()) == []
    assert (await renderer.render(request(WEB_SERVICE))).objects


async def test_concurrent_renders_share_a_ledger(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal.db") as ledger:
        renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", ledger)
        done: list[str] = []

        async def render(number: int) -> None:
            rendered = await renderer.render(request(WEB_SERVICE, release=f"web-{number}"))
            done.append(str(find(rendered.objects[0], "metadata", "name")))

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(render, number)
        assert sorted(done) == [f"web-{number}" for number in range(6)]
        assert ledger.entries() == ()


def test_the_scratch_folder_is_private(tmp_path: Path) -> None:
    async def run() -> None:
        await HelmRenderer(tool("helm"), tmp_path / "scratch").render(request(WEB_SERVICE))

    trio.run(run)
    assert stat.S_IMODE((tmp_path / "scratch").stat().st_mode) == 0o700


async def test_a_closed_ledger_prevents_renders(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal.db") as ledger:
        renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", ledger)
    with pytest.raises(
        RenderError, match="release web: "
    ) as caught:  # Without the ledger, a process could not be killed later, so none may run.
        await renderer.render(request(WEB_SERVICE))
    assert caught.value.transient


async def test_a_full_disk_while_writing_values_is_a_transient_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path, __: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wharfinger.packages.rendering.helm_renderer._write", full)
    with pytest.raises(RenderError, match="cannot be written: No space left on device; check the disk") as caught:
        await HelmRenderer(tool("helm"), tmp_path / "scratch").render(request(WEB_SERVICE))
    assert caught.value.transient
