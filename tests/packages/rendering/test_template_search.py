"""The search for a word in the templates of a chart."""

import os
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.rendering import template_search
from wharfinger.packages.rendering.template_search import templates_mention


def chart(folder: Path, **files: str) -> Path:
    (folder / "templates" / "deep").mkdir(parents=True)
    for name, text in files.items():
        (folder / "templates" / name.replace("__", "/")).write_text(text)
    return folder


def test_a_word_is_found_at_any_depth(tmp_path: Path) -> None:
    assert templates_mention(chart(tmp_path, deep__a="kind: ConversionWebhook\n"), "ConversionWebhook")


def test_words_outside_of_templates_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("ConversionWebhook")
    assert not templates_mention(chart(tmp_path, a="kind: ConfigMap\n"), "ConversionWebhook")


def test_a_chart_without_templates_mentions_nothing(tmp_path: Path) -> None:
    assert not templates_mention(tmp_path, "anything")


def test_links_and_pipes_are_skipped(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart") / "templates"
    (tmp_path / "outside").write_text("ConversionWebhook")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "nowhere").symlink_to(tmp_path / "nothing")
    os.mkfifo(folder / "pipe")
    assert not templates_mention(tmp_path / "chart", "ConversionWebhook")


def test_a_file_deleted_during_the_search_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chart(tmp_path, a="ConversionWebhook")
    monkeypatch.setattr(Path, "is_file", lambda path: not path.unlink(missing_ok=True))
    assert not templates_mention(folder, "ConversionWebhook")


def test_too_many_files_count_as_a_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_search, "MAX_FILES", 1)
    assert templates_mention(chart(tmp_path, a="", b=""), "ConversionWebhook")


def test_templates_of_nested_subcharts_are_searched(tmp_path: Path) -> None:
    write(tmp_path, {"charts/one/charts/two/templates/deep/a.yaml": "kind: ConversionWebhook\n"})
    assert templates_mention(tmp_path, "ConversionWebhook")
    assert not templates_mention(tmp_path, "ValidatingWebhook")


def test_other_files_of_subcharts_are_not_searched(tmp_path: Path) -> None:
    write(tmp_path, {"charts/one/values.yaml": "ConversionWebhook", "charts/README.md": "ConversionWebhook"})
    assert not templates_mention(chart(tmp_path), "ConversionWebhook")


@pytest.mark.parametrize("name", ["one-1.0.0.tgz", "one-1.0.0.tar.gz", "two/charts/one-1.0.0.tgz"])
def test_an_archived_subchart_counts_as_a_match(tmp_path: Path, name: str) -> None:
    write(tmp_path, {f"charts/{name}": ""})
    assert templates_mention(tmp_path, "ConversionWebhook")
