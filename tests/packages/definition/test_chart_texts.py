"""The files of a chart and of all charts in it, which may be folders or archives. Tests of the code that uses these files are
in test_chart_use.py and test_subchart_crds.py.
"""

import io
import tarfile
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from wharfinger.packages.definition import chart_texts
from wharfinger.packages.definition.chart_texts import ChartFile, TooMuchTextError, chart_files


def packed(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def paths(folder: Path, *, is_package: bool = False) -> dict[str, str]:
    return {"/".join(file.path): file.text for file in chart_files(folder, is_package=is_package)}


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("templates/a", "templates/a"),
        ("charts/db/templates/a", "templates/a"),
        ("charts/a/charts/b/crds/c", "crds/c"),
        ("charts/README", "charts/README"),
    ],
)
def test_the_path_of_a_file_inside_its_own_chart_is_known(path: str, inside: str) -> None:
    assert ChartFile(tuple(path.split("/")), b"").inside == tuple(inside.split("/"))


def test_nested_archives_are_read(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={"charts/README": "r", "files/x.tgz": "no chart"})
    inner = packed({"deep/templates/b": b"b", "deep/\xff": b"\xff"})
    outer = packed({"db/./templates/a": b"a", "db/charts/deep-1.tgz": inner})
    (folder / "charts" / "db-1.tgz").write_bytes(outer)
    found = paths(folder)
    assert found["charts/db/templates/a"] == "a"
    assert found["charts/db/charts/deep/templates/b"] == "b"
    assert found["charts/README"] == "r"
    assert found["files/x.tgz"] == "no chart"
    assert "�" in found.values()
    (folder / "charts" / "db-1.tgz").write_bytes(outer[: len(outer) // 2])
    assert "charts/README" in paths(folder)


def test_package_files_outside_of_the_chart_are_not_read(tmp_path: Path) -> None:
    write(chart(tmp_path / "chart"), {"hooks/a.sh": "", "charts/hooks/a": "", "crds/a.yaml": ""})
    assert set(paths(tmp_path / "chart", is_package=True)) == {"charts/hooks/a", "templates/config.yaml"}


def test_archives_nested_too_deep_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chart(tmp_path / "chart", files={"charts/README": ""})
    inner = packed({"b/c": b""})
    (folder / "charts" / "a.tgz").write_bytes(packed({"a/charts/b.tgz": inner}))
    assert "charts/a/charts/b/c" in paths(folder)
    monkeypatch.setattr(chart_texts, "MAX_NESTED", 1)
    with pytest.raises(TooMuchTextError):
        paths(folder)
