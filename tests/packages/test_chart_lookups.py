"""Charts that look into the cluster are known by their text, wherever it stands."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from tests.packages.charts import chart, write
from wharfinger.formats.json_value import JsonObject, ShapeError
from wharfinger.packages import chart_lookups
from wharfinger.packages.chart_lookups import LookupUse, lookup_use

CALL = '{{ (lookup "v1" "Secret" .Release.Namespace "a").data }}'
TPL = "{{ tpl .Values.text . }}"


def use_of(folder: Path, files: dict[str, str], *, is_package: bool = False) -> LookupUse:
    return lookup_use(chart(folder / "chart", files=files), is_package=is_package)


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
def test_a_call_is_found(text: str, name: str, tmp_path: Path) -> None:
    for is_package in (False, True):
        assert use_of(tmp_path, {name: text}, is_package=is_package).with_values({})


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
def test_what_is_no_call_is_not_taken_for_one(text: str, tmp_path: Path) -> None:
    assert use_of(tmp_path, {"templates/a.yaml": text}) == LookupUse(calls=False, tpl=False)


def test_what_is_no_template_counts_only_where_texts_are_rendered(tmp_path: Path) -> None:
    plain = {"values.yaml": f"text: '{CALL}'", "charts/db/values.yaml": f"text: '{CALL}'", "files/a.txt": CALL}
    for name, text in plain.items():
        folder = tmp_path / name.replace("/", "-")
        assert not use_of(folder, {name: text}).with_values({"text": CALL})
        assert use_of(folder, {name: text, "templates/a.yaml": TPL}).with_values({})
        (folder / "chart" / name).unlink()
        assert use_of(folder, {}).with_values({"text": CALL})
        assert not use_of(folder, {}).with_values({"text": "{{ .Release.Name }}"})


def test_values_without_a_text_form_are_somebody_elses_problem() -> None:
    bad: JsonObject = {"a": "\ud800"}
    assert LookupUse(calls=True, tpl=True).with_values(bad)
    with pytest.raises(ShapeError):
        LookupUse(calls=False, tpl=True).with_values(bad)


def test_what_helm_does_not_see_of_a_package_is_not_looked_at(tmp_path: Path) -> None:
    files = {
        "templates/a.yaml": TPL,
        "hooks/a.sh": "lookup",
        "values.yaml": "a: lookup",
        "openapi/values.yaml": "lookup",
    }
    assert not use_of(tmp_path, files, is_package=True).calls
    assert use_of(tmp_path, files).calls


def pack(path: Path, name: str, text: str) -> None:
    with tarfile.open(path, "w:gz") as archive:
        data = text.encode()
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))


def test_archives_are_looked_into(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={"charts/README": ""})
    pack(folder / "charts" / "db-1.tgz", "db/templates/a.yaml", "kind: Secret")
    assert lookup_use(folder, is_package=False) == LookupUse(calls=False, tpl=False)
    pack(folder / "charts" / "db-1.tgz", "db/templates/a.yaml", TPL)
    assert lookup_use(folder, is_package=False) == LookupUse(calls=False, tpl=True)
    pack(folder / "charts" / "db-1.tgz", "db/templates/a.yaml", CALL)
    assert lookup_use(folder, is_package=False).calls
    (folder / "charts" / "db-1.tgz").write_bytes(b"no archive lookup (")
    assert lookup_use(folder, is_package=False) == LookupUse(calls=False, tpl=False)


@pytest.mark.parametrize(("name", "value"), [("MAX_FILES", 1), ("MAX_FILE", 10), ("MAX_TOTAL", 60)])
def test_more_than_is_looked_at_counts_as_a_call(
    name: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = chart(tmp_path / "chart")
    assert not lookup_use(folder, is_package=False).calls
    monkeypatch.setattr(chart_lookups, name, value)
    assert lookup_use(folder, is_package=False).calls


def test_an_archive_of_zeros_counts_as_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_lookups, "MAX_FILE", 100_000)
    folder = chart(tmp_path / "chart", files={"charts/README": ""})
    pack(folder / "charts" / "db-1.tgz", "db/a", "\0" * 1_000_000)
    assert (folder / "charts" / "db-1.tgz").stat().st_size < 10_000
    assert lookup_use(folder, is_package=False).calls


def test_links_are_followed_and_pipes_are_not_opened(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart")
    os.mkfifo(folder / "templates" / "pipe")
    (folder / "templates" / "gone").symlink_to(tmp_path / "nothing")
    assert not lookup_use(folder, is_package=False).calls
    write(tmp_path, {"shared/templates/a.tpl": CALL})
    (folder / "charts").mkdir()
    (folder / "charts" / "shared").symlink_to(tmp_path / "shared")
    assert lookup_use(folder, is_package=False).calls


def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart")
    (folder / "templates" / "again").symlink_to(folder)
    assert lookup_use(folder, is_package=False) in {LookupUse(calls=False, tpl=False), LookupUse(calls=True, tpl=False)}


def test_no_chart_at_all(tmp_path: Path) -> None:
    assert lookup_use(tmp_path / "absent", is_package=True) == LookupUse(calls=False, tpl=False)


def test_what_cannot_be_opened_has_nothing_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chart(tmp_path / "chart", files={"templates/a.yaml": CALL})
    monkeypatch.setattr(Path, "is_file", lambda path: not path.unlink(missing_ok=True))
    assert not lookup_use(folder, is_package=False).calls
