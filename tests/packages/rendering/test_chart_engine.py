"""The resident chart engine: renders that equal those of ``helm template``, and workers that misbehave."""

import os
import random
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.packages.support.charts import tool, write
from tests.scale import FULL
from wharfinger.formats.json.value import JsonObject, JsonValue, decode_json
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.chart_engine import ChartEngine, EngineLimits, open_chart_engine
from wharfinger.packages.rendering.helm_renderer import HelmRenderer, RenderLimits
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest
from wharfinger.process.command import Ending

CHARTS: Final = Path(__file__).parents[2] / "charts"
ENGINE: Final = Path(__file__).parents[3] / ".cache" / "tools" / "engine" / "wharfinger-engine"
LIMITS: Final = EngineLimits(wall_s=60, output_bytes=64 * 1024 * 1024, memory_bytes=1024**3, workers=1)
CHART: Final = {
    "Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\n",
    "templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.name }}}\n",
}
WRONG: Final = {
    "no chart": {"templates/map.yaml": ""},
    "no template": {**CHART, "templates/map.yaml": "{{ if }}"},
    "a call that fails": {**CHART, "templates/map.yaml": '{{ fail "not today" }}'},
    "a missing value": {**CHART, "templates/map.yaml": '{{ required "name a colour" .Values.colour }}'},
    "no YAML": {**CHART, "templates/map.yaml": "a: [b"},
    "a schema": {**CHART, "values.schema.json": '{"required": ["colour"]}'},
    "a library": {**CHART, "Chart.yaml": CHART["Chart.yaml"] + "type: library\n"},
    "a dependency": {
        **CHART,
        "Chart.yaml": CHART["Chart.yaml"] + "dependencies: [{name: db, version: 1.0.0, repository: 'file://../db'}]\n",
    },
    "a newer Kubernetes": {**CHART, "Chart.yaml": CHART["Chart.yaml"] + "kubeVersion: '>=9.0.0'\n"},
    "endless": {**CHART, "templates/a.tpl": '{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}'},
}


def request(chart: Path, values: JsonObject | None = None) -> RenderRequest:
    versions = ("v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1")
    return RenderRequest(chart, "", "web", "prod", values or {"name": "x"}, "v1.37.0", versions, is_upgrade=False)


def engine_program() -> Path:
    if not ENGINE.exists():
        pytest.skip("no chart engine: `make engine` builds it")
    return ENGINE


@asynccontextmanager
async def opened(tmp_path: Path, program: Path, limits: EngineLimits = LIMITS) -> AsyncIterator[ChartEngine]:
    folder = tmp_path / "engine"
    folder.mkdir(exist_ok=True)
    async with open_chart_engine(program, folder, None, limits) as engine:
        yield engine


async def outcome(renderer: HelmRenderer, wanted: RenderRequest) -> Rendered | str:
    try:
        return await renderer.render(wanted)
    except RenderError as error:
        return f"{error}, transient: {error.transient}"


def script(folder: Path, body: str) -> Path:
    path = folder / "engine.sh"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo v4.3.1; exit; fi\n{body}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def values_file(tmp_path: Path) -> Path:
    path = tmp_path / "values.yaml"
    path.write_text("name: x\n")
    return path


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_the_corpus_is_rendered_as_by_helm(tmp_path: Path) -> None:
    async with opened(tmp_path, engine_program()) as engine:
        with_engine = HelmRenderer(tool("helm"), tmp_path / "scratch", engine=engine)
        without = HelmRenderer(tool("helm"), tmp_path / "scratch")
        for folder in sorted(path.parent for path in CHARTS.glob("*/Chart.yaml")):
            for upgrade in (False, True):
                wanted = RenderRequest(
                    folder, "", "web", "prod", {}, "v1.37.0", request(folder).api_versions, is_upgrade=upgrade
                )
                assert await outcome(with_engine, wanted) == await outcome(without, wanted), folder.name


def changed(value: JsonValue, draw: random.Random) -> JsonValue:
    """Return the values with some members removed and some scalars replaced, partly by scalars of other types."""
    if isinstance(value, dict):
        return {name: changed(item, draw) for name, item in value.items() if draw.random() > 0.03}
    if isinstance(value, list):
        return [changed(item, draw) for item in value if draw.random() > 0.1]
    if draw.random() > 0.15:
        return value
    strange: list[JsonValue] = [
        None,
        True,
        False,
        0,
        -1,
        7,
        1.5,
        "",
        "x",
        "two words",
        "a: b",
        "{{ .Values }}",
        [],
        {},
        ["x"],
    ]
    return draw.choice(strange)


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_random_values_are_rendered_as_by_helm(tmp_path: Path) -> None:
    draw, count = random.Random(1), 500 if FULL else 30  # noqa: S311 - not a secret
    folders = [path.parent for path in sorted(CHARTS.glob("*/values.yaml"))]
    async with opened(tmp_path, engine_program()) as engine:
        with_engine = HelmRenderer(tool("helm"), tmp_path / "scratch", engine=engine)
        without = HelmRenderer(tool("helm"), tmp_path / "scratch")
        for number in range(count):
            folder = folders[number % len(folders)]
            known = read_yaml((folder / "values.yaml").read_bytes(), what="values.yaml")
            values = changed(known, draw) if isinstance(known, dict) else {}
            wanted = request(folder, values if isinstance(values, dict) else {})
            assert await outcome(with_engine, wanted) == await outcome(without, wanted), (folder.name, values)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("case", WRONG)
async def test_errors_equal_those_of_helm(tmp_path: Path, case: str) -> None:
    chart = write(tmp_path / "chart", WRONG[case])
    async with opened(tmp_path, engine_program()) as engine:
        with_engine = await outcome(HelmRenderer(tool("helm"), tmp_path / "scratch", engine=engine), request(chart))
        assert with_engine == await outcome(HelmRenderer(tool("helm"), tmp_path / "scratch"), request(chart))
        assert isinstance(with_engine, str)
        assert (
            await engine.template(request(write(tmp_path / "good", CHART)), tmp_path / "good", values_file(tmp_path))
        ).ok


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_chart_that_times_out_does_not_prevent_the_next_render(tmp_path: Path) -> None:
    loop = '{{ range $i, $_ := until 100000 }}{{ range $j, $_ := until 100000 }}{{ sha256sum "x" | trunc 0 }}{{ end }}{{ end }}'
    slow = write(tmp_path / "slow", {**CHART, "templates/map.yaml": loop})
    good = write(tmp_path / "good", CHART)
    limits = EngineLimits(wall_s=3, output_bytes=1024**2, memory_bytes=1024**3, workers=1)
    async with opened(tmp_path, engine_program(), limits) as engine:
        found = await engine.template(request(slow), slow, values_file(tmp_path))
        assert found.ending is Ending.DEADLINE
        assert (await engine.template(request(good), good, values_file(tmp_path))).ok


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_chart_that_needs_too_much_memory_is_reported(tmp_path: Path) -> None:
    grow = '{{ $s := repeat 1048576 "x" }}{{ range until 12 }}{{ $s = print $s $s }}{{ end }}{{ len $s }}'
    large = write(tmp_path / "large", {**CHART, "templates/map.yaml": grow})
    good = write(tmp_path / "good", CHART)
    limits = EngineLimits(wall_s=60, output_bytes=1024**2, memory_bytes=512 * 1024**2, workers=1)
    async with opened(tmp_path, engine_program(), limits) as engine:
        renderer = HelmRenderer(
            tool("helm"), tmp_path / "scratch", limits=RenderLimits(memory_bytes=512 * 1024**2), engine=engine
        )
        with pytest.raises(RenderError, match="takes more than 512 MiB of memory"):
            await renderer.render(request(large))
        assert (await renderer.render(request(good))).objects


# Printing or merging a dict that contains itself recurses until the Go runtime aborts, which `recover` cannot prevent.
OVERFLOWS: Final = {
    "printed": '{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}',
    "merged": '{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $e := dict }}{{ $_ := set $e "a" $e }}{{ merge $d $e | len }}',
}


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("case", OVERFLOWS)
async def test_a_chart_that_panics_the_engine_fails_only_its_own_render(tmp_path: Path, case: str) -> None:
    bad = write(tmp_path / "bad", {**CHART, "Chart.yaml": CHART["Chart.yaml"].replace("demo", "knot")})
    (bad / "templates" / "map.yaml").write_text(OVERFLOWS[case])
    good = write(tmp_path / "good", CHART)
    pids, rendered, panicked = tmp_path / "pids", 0, False
    program = script(tmp_path, f"echo $$ >> {pids}; exec {engine_program()}")
    async with opened(tmp_path, program, replace(LIMITS, memory_bytes=4 * 1024**3, workers=2)) as engine:
        renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", engine=engine)
        async with trio.open_nursery() as nursery:

            async def render_others() -> None:
                nonlocal rendered
                while not panicked:  # These renders are not cancelled, because that would also replace a worker.
                    assert (await renderer.render(request(good))).objects
                    rendered += 1

            nursery.start_soon(render_others)
            with pytest.raises(RenderError, match=r"the chart knot ends the program .*: stack overflow; ") as caught:
                await renderer.render(request(bad))
            panicked = True
        assert not caught.value.transient
        assert rendered > 0
        assert engine.statistics.replaced == 1
        assert (await renderer.render(request(good))).objects
    for pid in map(int, pids.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_chart_that_panics_helm_is_reported(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad", {**CHART, "templates/map.yaml": OVERFLOWS["printed"]})
    renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", limits=RenderLimits(memory_bytes=4 * 1024**3))
    with pytest.raises(RenderError, match=r"the chart demo ends the program .*: stack overflow; "):
        await renderer.render(request(bad))


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_an_output_over_the_limit_is_refused(tmp_path: Path) -> None:
    large = write(
        tmp_path / "large",
        {**CHART, "templates/map.yaml": CHART["templates/map.yaml"] + 'data: {a: {{ repeat 4000 "x" }}}\n'},
    )
    limits = EngineLimits(wall_s=60, output_bytes=2000, memory_bytes=1024**3, workers=1)
    async with opened(tmp_path, engine_program(), limits) as engine:
        assert (await engine.template(request(large), large, values_file(tmp_path))).ending is Ending.OUTPUT_LIMIT


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exit 7", "the chart engine ended"),
        ("echo it broke >&2; exit 7", "it broke"),
        (
            "printf 'fatal error: no\\n\\ngoroutine 1 [running]:\\n' >&2; exit 2",
            "the chart demo ends the program that renders it: no;",
        ),
        ("head -c 4 >/dev/null; printf '\\000\\000\\000\\001x'; cat >/dev/null", "answer cannot be read"),
        ("head -c 4 >/dev/null; printf '\\377\\377\\377\\377'; cat >/dev/null", "renders to more than"),
        ("kill -9 $$", "SIGKILL"),
    ],
)
async def test_a_failed_worker_fails_only_its_render(tmp_path: Path, body: str, said: str) -> None:
    chart = write(tmp_path / "chart", CHART)
    async with opened(tmp_path, script(tmp_path, body)) as engine:
        renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", engine=engine)
        for _ in range(2):
            with pytest.raises(RenderError, match=said):
                await renderer.render(request(chart))
        assert (engine.statistics.requests, engine.statistics.replaced) == (2, 2)


async def test_an_engine_that_cannot_be_run_is_reported(tmp_path: Path) -> None:
    chart, program = write(tmp_path / "chart", CHART), script(tmp_path, "echo not found >&2; exit 127")
    async with opened(tmp_path, program) as engine:
        renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", engine=engine)
        with pytest.raises(RenderError, match="the chart engine cannot be run: not found; check --engine") as caught:
            await renderer.render(request(chart))
        assert caught.value.transient


@pytest.mark.parametrize("is_gone", [True, False])
async def test_helm_renders_if_the_engine_program_was_replaced(tmp_path: Path, *, is_gone: bool) -> None:
    chart, program = write(tmp_path / "chart", CHART), script(tmp_path, "exit 7")
    async with opened(tmp_path, program) as engine:
        program.unlink()
        if not is_gone:
            script(tmp_path, "exit 8; # of another version")
        assert not engine.is_unchanged
        renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", engine=engine)
        assert (await renderer.render(request(chart))).objects


async def test_a_cancelled_render_releases_its_slot(tmp_path: Path) -> None:
    chart = write(tmp_path / "chart", CHART)
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    hang_once = f"if mkdir {tmp_path}/hung; then echo $$ >{pids}; cat >/dev/null; fi\nexit 7"
    async with opened(tmp_path, script(tmp_path, hang_once)) as engine, trio.open_nursery() as nursery:
        nursery.start_soon(engine.template, request(chart), chart, values_file(tmp_path))
        pid = int(await trio.to_thread.run_sync(pids.read_text))
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True), trio.fail_after(LIMITS.wall_s / 2):
            assert (await engine.template(request(chart), chart, values_file(tmp_path))).returncode == 7
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_helm_of_another_version_renders_instead_of_the_engine(tmp_path: Path) -> None:
    chart = write(tmp_path / "chart", CHART)
    program = script(tmp_path, "exit 7")
    program.write_text(program.read_text().replace("v4.3.1", "v4.0.0"))
    async with opened(tmp_path, program) as engine:
        renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", engine=engine)
        assert (await renderer.render(request(chart))).objects


@pytest.mark.parametrize(
    ("body", "why"),
    [("#!/bin/sh\nexit 3\n", "does not report its version"), (None, "cannot be run"), ("#!/bin/sh\n", "does not")],
)
async def test_a_program_that_is_not_an_engine_is_refused(tmp_path: Path, body: str | None, why: str) -> None:
    program = tmp_path / "engine.sh"
    if body is not None:
        program.write_text(body)
        program.chmod(0o755)
    with pytest.raises(RenderError, match=why):
        async with opened(tmp_path, program):
            pass


async def test_a_closed_engine_renders_nothing_and_leaves_no_process(tmp_path: Path) -> None:
    chart = write(tmp_path / "chart", CHART)
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    program = script(tmp_path, f"echo $$ >{pids}; cat >/dev/null")
    async with opened(tmp_path, program) as engine, trio.open_nursery() as nursery:
        nursery.start_soon(engine.template, request(chart), chart, values_file(tmp_path))
        pid = int(await trio.to_thread.run_sync(pids.read_text))
        nursery.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not (await engine.template(request(chart), chart, values_file(tmp_path))).ok


@pytest.mark.unmeasured
async def test_sequential_requests_start_one_worker(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = script(tmp_path, f"echo x >> {started}; exec {engine_program()}")
    folder = write(tmp_path / "chart", CHART)
    async with opened(tmp_path, program, replace(LIMITS, workers=3)) as engine:
        for _ in range(4):
            ended = await engine.template(request(folder), folder, values_file(tmp_path))
            assert ended.ok, ended.stderr
    assert started.read_text() == "x\n"


@pytest.mark.unmeasured
async def test_an_oversized_request_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "chart", CHART)
    async with opened(tmp_path, engine_program()) as engine:
        with monkeypatch.context() as patched:
            patched.setattr("wharfinger.packages.rendering.chart_engine.MAX_REQUEST", 10)
            refused = await engine.template(request(folder), folder, values_file(tmp_path))
        assert not refused.ok
        assert refused.stderr.endswith(b"is too large")
        assert (await engine.template(request(folder), folder, values_file(tmp_path))).ok


async def test_the_engine_executes_the_templates_of_a_resource_set(tmp_path: Path) -> None:
    async with opened(tmp_path, engine_program()) as engine:
        assert engine.versions.has_templates
        templates: list[JsonObject] = [
            {"field": "a", "text": "<< inputs.x >>"},
            {"field": "b", "object": {"key": "<< inputs.x >>"}},
        ]
        done = await engine.execute(templates, [{"x": 1}, {"x": "two"}])
        assert done.outcome.ok
        assert decode_json(done.outcome.stdout, max_bytes=4096, what="answer") == [
            {"template": 0, "input": 0, "text": "1"},
            {"template": 0, "input": 1, "text": "two"},
            {"template": 1, "input": 0, "text": "key: 1\n"},
            {"template": 1, "input": 1, "text": "key: two\n"},
        ]
        failed = await engine.execute([{"field": "a", "text": '<< fail "not today" >>'}], [])
        assert (failed.outcome.returncode, failed.outcome.stdout) == (1, b"")
        assert failed.outcome.stderr.endswith(b"error calling fail: not today")
        assert engine.statistics.replaced == 0


@pytest.mark.slow
async def test_an_endless_template_replaces_only_its_worker(tmp_path: Path) -> None:
    async with opened(tmp_path, engine_program(), replace(LIMITS, wall_s=1)) as engine:
        text = "<< range until 1000000 >><< range until 1000000 >><< end >><< end >>"
        done = await engine.execute([{"field": "a", "text": text}], [])
        assert done.outcome.ending is Ending.DEADLINE
        assert engine.statistics.replaced == 1
        again = await engine.execute([{"field": "a", "text": "x"}], [])
        assert again.outcome.ok
