"""A folder with links to the files of a chart, and with added templates."""

from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering import added_templates
from wharfinger.packages.rendering.added_templates import add_templates, is_added, link_chart

FILES = {"templates/deep/a.yaml": "a", "charts/db/Chart.yaml": "name: db", "values.yaml": "{}"}


def test_templates_are_added_to_a_linked_chart(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=FILES)
    link_chart(folder, tmp_path / "made")
    add_templates(tmp_path / "made", {"ours.yaml": "one", "config.yaml": "instead"})
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == sorted(path.name for path in folder.iterdir())
    templates = tmp_path / "made" / "templates"
    assert not templates.is_symlink()
    assert {path.name for path in templates.iterdir()} == {"config.yaml", "deep", "ours.yaml"}
    assert ((templates / "ours.yaml").read_text(), (templates / "config.yaml").read_text()) == ("one", "instead")
    assert "ConfigMap" in (folder / "templates" / "config.yaml").read_text()
    assert not (folder / "templates" / "ours.yaml").exists()


def test_a_chart_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_templates, "MAX_FILES", 2)
    with pytest.raises(RenderError, match="more than 2 files"):
        link_chart(chart(tmp_path / "chart", files=FILES), tmp_path / "made")


def test_only_templates_of_the_main_chart_are_recognized_as_added() -> None:
    assert is_added("web/templates/ours.yaml", "ours.yaml")
    for source in ("web/charts/db/templates/ours.yaml", "web/templates/deep/ours.yaml", "web/templates/other.yaml", ""):
        assert not is_added(source, "ours.yaml")
