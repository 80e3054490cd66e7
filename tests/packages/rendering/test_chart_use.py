"""The facts that a render may depend on, found in the text of a chart."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from wharfinger.formats.json.value import JsonObject, ShapeError
from wharfinger.packages.definition import chart_texts
from wharfinger.packages.rendering.chart_use import EVERYTHING, ChartUse, chart_use

CALL = '{{ (lookup "v1" "Secret" .Release.Namespace "a").data }}'
TPL = "{{ tpl .Values.text . }}"


def seen(use: ChartUse) -> tuple[bool, bool]:
    return use.lookup, use.tpl


def use_of(folder: Path, files: dict[str, str], *, is_package: bool = False) -> ChartUse:
    return chart_use(chart(folder / "chart", files=files), is_package=is_package)


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        "{{lookup `v1` `Secret` `` `a`}}",
        "{{ $found := lookup $version .Values.kind (print 1) '' }}",
        '{{- with lookup\n  (printf "v%d" 1) .a .b .c }}{{ end }}',
        '{{/* {{ */}}{{ if not (lookup\t"v1" "a" "b" "c") }}{{ end }}',
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        "templates/a.yaml",
        "templates/_helpers.tpl",
        "templates/deep/NOTES.txt",
        "charts/db/templates/x",
        "charts/a/charts/b/templates/x",
    ],
)
def test_lookup_calls_are_found(text: str, name: str, tmp_path: Path) -> None:
    for is_package in (False, True):
        assert use_of(tmp_path, {name: text}, is_package=is_package).may_look_up({})


@pytest.mark.parametrize(
    "text",
    [
        "{{ .Values.lookup }}",
        '{{ include "web.lookup" . }}',
        "{{ $lookup := 1 }}{{ $lookup }}",
        "dns-lookup: 1",
        "# we lookup the address here",
        '{{ .lookup "a" }}',
        'nslookup "a"',
        "",
    ],
)
def test_other_uses_of_the_word_lookup_are_not_calls(text: str, tmp_path: Path) -> None:
    assert seen(use_of(tmp_path, {"templates/a.yaml": text})) == (False, False)


def test_other_files_are_searched_only_if_texts_are_rendered(tmp_path: Path) -> None:
    plain = {"values.yaml": f"text: '{CALL}'", "charts/db/values.yaml": f"text: '{CALL}'", "files/a.txt": CALL}
    for name, text in plain.items():
        folder = tmp_path / name.replace("/", "-")
        assert not use_of(folder, {name: text}).may_look_up({"text": CALL})
        assert use_of(folder, {name: text, "templates/a.yaml": TPL + '{{ .Files.Get "a" }}'}).may_look_up({})
        (folder / "chart" / name).unlink()
        assert use_of(folder, {}).may_look_up({"text": CALL})
        assert not use_of(folder, {}).may_look_up({"text": "{{ .Release.Name }}"})


@pytest.mark.parametrize(
    "files",
    [
        {"crds/a.yaml": f"description: used to lookup (values), {CALL}"},
        {"charts/db/crds/a.yaml": f"description: used to lookup (values), {CALL}"},
        {"values.yaml": "# lookup `x`\ntext: used to lookup 'values' {{ .Release.Name }}"},
        {"README.md": CALL},
        {"templates/NOTES.txt": '{{/* lookup "v1" */}}{{ "lookup (a)" }} lookup "v1"'},
    ],
)
def test_lookup_in_prose_is_not_a_call(files: dict[str, str], tmp_path: Path) -> None:
    use = use_of(tmp_path, {"templates/a.yaml": TPL, **files})
    assert (use.tpl, use.may_look_up({"text": "we lookup `this` here"})) == (True, False)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ('{{ tpl "{{ (lookup `v1` `Secret` `a` `b`).data }}" . }}', ""),
        ('{{ tpl (printf "{{ %s }}" .Values.text) . }}', "lookup `v1` `Secret` `a` `b`"),
        ('{{ tpl (print "{{" .Values.text "}}") . }}', "(lookup `v1` `Secret` `a` `b`).data"),
        ("{{ tpl (print .Values.text .Values.more) . }}", "{{ lookup `v1` `Secret` "),
    ],
)
def test_calls_in_composed_templates_are_found(template: str, value: str, tmp_path: Path) -> None:
    assert use_of(tmp_path, {"templates/a.yaml": template}).may_look_up({"text": value})


def test_escaped_braces_do_not_compose_a_template(tmp_path: Path) -> None:
    text = TPL + 'summary: {{`{{ $labels.pod }}`}} and {{ "{{" }} $value }}'
    use = use_of(tmp_path, {"templates/a.yaml": text})
    assert not use.builds
    assert not use.may_look_up({"text": "to lookup `that`"})


VERSIONS = ("apps/v1", "apps/v1/Deployment", "example.com/v1", "example.com/v1/Sail", "other.org/v1", "v1")


@pytest.mark.parametrize(
    ("text", "kube_version", "versions"),
    [
        ("{{ .Values.text }} a.example.com/Capabilities", False, []),
        ("{{ .Capabilities.KubeVersion.Minor }}", True, []),
        ("{{ .Capabilities.HelmVersion.Version }}", True, []),
        ('{{ if .Capabilities.APIVersions.Has "other.org/v1" }}{{ end }}', False, ["other.org/v1"]),
        ("{{ if ($.Capabilities.APIVersions.Has `gone/v1`) }}{{ end }}", False, []),
        (
            '{{ if .Capabilities.APIVersions.Has .v }}{{ end }}{{ $v := "example.com/v2" }}',
            False,
            ["apps/v1", "apps/v1/Deployment", "example.com/v1", "example.com/v1/Sail", "v1"],
        ),
        ('{{ has "v1" .Capabilities.APIVersions }}', False, [*VERSIONS]),
        ("{{ .Capabilities | toJson }}", True, [*VERSIONS]),
        ("{{ $all := .Capabilities }}", True, [*VERSIONS]),
        ('{{ get . "Capabilities" }}', True, [*VERSIONS]),
    ],
)
def test_only_versions_that_templates_read_are_relevant(
    text: str, kube_version: bool, versions: list[str], tmp_path: Path
) -> None:
    for name in ("templates/a.yaml", "charts/db/templates/_b.tpl"):
        use = use_of(tmp_path / name.replace("/", "-"), {name: text})
        assert (use.kube_version, use.versions(VERSIONS)) == (kube_version, versions)


@pytest.mark.parametrize("place", ["values.yaml", "charts/db/values.yaml", "settings"])
def test_versions_of_groups_in_the_values_are_relevant_to_computed_names(place: str, tmp_path: Path) -> None:
    asks = '{{ if .Capabilities.APIVersions.Has (printf "%s/v1" .Values.group) }}{{ end }}'
    files = {"templates/a.yaml": asks} | ({} if place == "settings" else {place: "group: other.org\n"})
    use = use_of(tmp_path, files).with_values({"group": "other.org"} if place == "settings" else {})
    assert use.versions(VERSIONS) == ["apps/v1", "apps/v1/Deployment", "other.org/v1", "v1"]


def test_versions_read_by_a_rendered_value_are_relevant(tmp_path: Path) -> None:
    text = '{{ if .Capabilities.APIVersions.Has "example.com/v1" }}{{ end }}'
    assert use_of(tmp_path, {}).with_values({"text": text}).versions(VERSIONS) == []
    assert use_of(tmp_path, {"templates/a.yaml": TPL}).with_values({"text": text}).versions(VERSIONS) == [
        "example.com/v1"
    ]


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("{{ .Values.global.enabledModules }}", True),
        ("{{ $g := .Values.global }}", True),
        ('{{ index .Values "global" }}', True),
        ("{{ toYaml .Values }}", True),
        ("{{ range $.Platform }}{{ end }}", True),
        ("{{ .Values.global.discovery.kubernetesVersion }} enabledModules", False),
        ("{{ .Values.own.Settings }}", False),
    ],
)
def test_platform_values_read_by_templates_are_recognized(text: str, reads: bool, tmp_path: Path) -> None:
    assert use_of(tmp_path, {"templates/a.yaml": text}).reads("enabledModules") is reads


def test_values_that_cannot_be_encoded_are_refused_only_if_searched() -> None:
    bad: JsonObject = {"a": "\ud800"}
    assert ChartUse(lookup=True).may_look_up(bad)
    with pytest.raises(ShapeError):
        ChartUse(tpl=True).may_look_up(bad)


def test_package_files_hidden_from_helm_are_not_searched(tmp_path: Path) -> None:
    files = {
        "templates/a.yaml": TPL,
        "hooks/a.sh": CALL,
        "values.yaml": f"a: '{CALL}'",
        "openapi/values.yaml": CALL,
    }
    assert not use_of(tmp_path, files, is_package=True).lookup
    assert use_of(tmp_path, files).lookup


def pack(path: Path, name: str, text: str) -> None:
    with tarfile.open(path, "w:gz") as archive:
        data = text.encode()
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))


def test_archives_of_subcharts_are_searched(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={"charts/README": ""})
    pack(folder / "charts" / "db-1.tgz", "db/templates/a.yaml", "kind: Secret")
    assert seen(chart_use(folder, is_package=False)) == (False, False)
    pack(folder / "charts" / "db-1.tgz", "db/templates/a.yaml", TPL)
    assert seen(chart_use(folder, is_package=False)) == (False, True)
    pack(folder / "charts" / "db-1.tgz", "db/templates/a.yaml", CALL)
    assert chart_use(folder, is_package=False).lookup
    (folder / "charts" / "db-1.tgz").write_bytes(b"no archive lookup (")
    assert seen(chart_use(folder, is_package=False)) == (False, False)


@pytest.mark.parametrize(("name", "value"), [("MAX_FILES", 1), ("MAX_FILE", 10), ("MAX_TOTAL", 60)])
def test_charts_beyond_the_search_limits_count_as_calling(
    name: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = chart(tmp_path / "chart")
    assert not chart_use(folder, is_package=False).lookup
    monkeypatch.setattr(chart_texts, name, value)
    assert chart_use(folder, is_package=False).lookup


def test_an_archive_beyond_the_size_limit_counts_as_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_texts, "MAX_FILE", 100_000)
    folder = chart(tmp_path / "chart", files={"charts/README": ""})
    pack(folder / "charts" / "db-1.tgz", "db/a", "\0" * 1_000_000)
    assert (folder / "charts" / "db-1.tgz").stat().st_size < 10_000
    assert chart_use(folder, is_package=False).lookup


def test_links_are_followed_and_pipes_are_not_opened(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart")
    os.mkfifo(folder / "templates" / "pipe")
    (folder / "templates" / "gone").symlink_to(tmp_path / "nothing")
    assert not chart_use(folder, is_package=False).lookup
    write(tmp_path, {"shared/templates/a.tpl": CALL})
    (folder / "charts").mkdir()
    (folder / "charts" / "shared").symlink_to(tmp_path / "shared")
    assert chart_use(folder, is_package=False).lookup


def test_circular_links_are_not_followed_forever(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart")
    (folder / "templates" / "again").symlink_to(folder)
    use = chart_use(folder, is_package=False)
    assert use == EVERYTHING or not use.lookup


def test_a_missing_chart_uses_nothing(tmp_path: Path) -> None:
    assert seen(chart_use(tmp_path / "absent", is_package=True)) == (False, False)


def test_files_that_cannot_be_opened_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chart(tmp_path / "chart", files={"templates/a.yaml": CALL})
    monkeypatch.setattr(Path, "is_file", lambda path: not path.unlink(missing_ok=True))
    assert not chart_use(folder, is_package=False).lookup
