"""Settings that no template of a plain chart reads. They are reported only if the templates prove this."""

from pathlib import Path
from typing import Final

import pytest

from tests.corpus.charts import NAMES, unpack
from tests.packages.support.charts import chart, write
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.rendering.chart_use import chart_use
from wharfinger.packages.settings.unread_settings import unread_settings

READS: Final = (
    "{{ .Values.replicas }} {{ $.Values.image.tag | quote }} {{ with .Values.ports }}{{ .http }}{{ end }}\n"
    '{{ index .Values "with-dash" "inner" }} {{ if (hasKey .Values "flag") }}{{ end }} {{ $root.Values.deep.down }}\n'
    '{{/* .Values.inComment */}} {{ include "x" (dict "context" $ "a" .Values.whole) }} {{ (.Values.resources).limits }}\n'
)
SUB: Final = {
    "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
    "charts/db/templates/a.yaml": "# {{ .Values.size }} {{ .Values.global.zone }}\n",
}
DEPENDENT: Final = (
    "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n"
    "- {name: db, alias: store, version: 1.0.0, repository: '', condition: store.on}\n"
    "- {name: missing, version: 1.0.0, repository: 'https://charts.example'}\n"
)


def unread(folder: Path, settings: JsonObject, files: dict[str, str]) -> list[str]:
    made = chart(folder / "chart", files=files)
    return [f"{each.path}: {each.message}" for each in unread_settings(chart_use(made, is_package=False), settings)]


@pytest.mark.parametrize(
    "settings",
    [
        {"text": "a", "replicas": 1, "image": {"tag": "2"}, "ports": {"http": 1, "other": 2}},
        {"with-dash": {"inner": 1}, "flag": True, "deep": {"down": {"more": 1}}, "whole": {"any": {"thing": 1}}},
        {"image": "a text where a template reads a field", "resources": {"limits": {}}, "empty": {}},
        {"global": {"anything": 1}, "tags": {"front": True}, "list": [], "replicas": None},
    ],
)
def test_settings_read_by_templates_have_no_warning(settings: JsonObject, tmp_path: Path) -> None:
    settings = {key: value for key, value in settings.items() if key not in {"list", "empty"}}
    assert not unread(tmp_path, settings, {"templates/r.txt": READS})


def test_settings_not_read_by_templates_are_warnings(tmp_path: Path) -> None:
    settings: JsonObject = {
        "replicaCount": 3,
        "image": {"tga": "1", "tag": "2"},
        "inComment": 1,
        "with-dash": {"outer": {"a": 1}},
    }
    assert unread(tmp_path, settings, {"templates/r.txt": READS}) == [
        "image.tga: no template of the chart reads this setting; did you mean tag?",
        "inComment: no template of the chart reads this setting",
        "replicaCount: no template of the chart reads this setting; did you mean replicas?",
        "with-dash.outer: no template of the chart reads this setting",
    ]


@pytest.mark.parametrize(
    "template",
    [
        "{{ toYaml .Values }}",
        "{{ range $k, $v := .Values }}{{ end }}",
        "{{ index .Values $key }}",
        "{{ $values := $.Values }}",
        '{{ index . "Values" "a" }}',
        '{{ include "x" (dict "Values" .Values) }}',
        '{{ tpl (printf "{{ .Values.%s }}" .name) . }}',
        '{{ dig "a" "b" "" .Values }}',
    ],
)
def test_charts_that_read_values_dynamically_have_no_warnings(template: str, tmp_path: Path) -> None:
    assert not unread(tmp_path, {"nobody": 1}, {"templates/r.txt": template})


def test_settings_read_by_texts_that_tpl_renders_have_no_warning(tmp_path: Path) -> None:
    files = {"templates/r.txt": "{{ tpl .Values.text . }}", "values.yaml": "text: '{{ .Values.byDefault }}'\n"}
    settings: JsonObject = {"text": "{{ .Values.own }}", "own": 1, "byDefault": 2, "other": 3}
    assert unread(tmp_path, settings, files) == ["other: no template of the chart reads this setting"]


def test_settings_of_subcharts_are_read_below_their_names(tmp_path: Path) -> None:
    files = {"Chart.yaml": DEPENDENT, **SUB}
    settings: JsonObject = {
        "db": {"size": 1, "sizes": 2},
        "store": {"on": True, "size": 1, "colour": 2},
        "missing": {"any": 1},  # The files of this subchart do not exist.
    }
    found = unread(tmp_path, settings, files)
    assert [each.partition(":")[0] for each in found] == ["db.sizes", "store.colour"]


@pytest.mark.parametrize("name", NAMES)
def test_the_chart_corpus_has_no_false_warning(name: str, tmp_path: Path) -> None:
    for made in unpack(name, tmp_path):
        use = chart_use(made.folder, is_package=False)
        assert not unread_settings(use, made.values)


def test_a_chart_with_an_unreadable_chart_file_has_no_warnings(tmp_path: Path) -> None:
    made = write(chart(tmp_path / "chart"), {"Chart.yaml": "a: ["})
    assert not unread_settings(chart_use(made, is_package=False), {"nobody": 1})
