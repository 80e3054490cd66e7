"""The end mark, an object that Helm puts after all others of a chart, and the files that Helm has written before it fails at
this mark.
"""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.end_mark import END_FILE, block_end, is_end, read_written, stopped_at_end

ONE = "---\n# Source: web/templates/a.yaml\na: 1\n\n\n"
TWO = "---\n# Source: web/templates/a.yaml\na: 2\n---\n# Source: web/templates/b.yaml\nb: 2\n"
OTHER = "---\n# Source: web/charts/db/templates/a.yaml\na: 3\n"


def wrote(out: Path, *names: str) -> str:
    return "\n".join(f"wrote {out}/{name}" for name in names) + "\n\n"


def test_documents_are_read_in_the_order_of_writing(tmp_path: Path) -> None:
    write(tmp_path, {"web/templates/a.yaml": ONE + TWO, "web/charts/db/templates/a.yaml": OTHER})
    said = wrote(tmp_path, "web/templates/a.yaml", "web/charts/db/templates/a.yaml", "web/templates/a.yaml")
    assert read_written(tmp_path, said, 1000) == ONE + OTHER + TWO
    assert read_written(tmp_path, "\n", 1000) == ""


@pytest.mark.parametrize(
    ("names", "most", "why"),
    [
        (["web/templates/a.yaml"], 1000, "wrote more documents"),
        (["web/templates/a.yaml"] * 3, 1000, "wrote fewer documents"),
        (["web/templates/a.yaml"] * 2, len(ONE + TWO) - 1, "more than"),
        (["../elsewhere"], 1000, "wrote an unexpected elsewhere"),
    ],
)
def test_written_files_must_match_the_output_of_helm(names: list[str], most: int, why: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(tmp_path, {"out/web/templates/a.yaml": ONE + TWO, "elsewhere": ONE})
    said = wrote(out, *names).replace(f"{out}/..", f"{tmp_path}")
    with pytest.raises(RenderError, match=why):
        read_written(out, said, most)


def test_only_a_stop_at_the_end_mark_is_accepted(tmp_path: Path) -> None:
    place = block_end(tmp_path / "out", "web")
    assert place.is_dir()
    assert is_end(f"web/templates/{END_FILE}")
    said = f"level=WARN msg=x\nError: open {place}: is a directory\n"
    assert stopped_at_end(said, place)
    assert stopped_at_end(said + "helm.go:86: [debug] open x", place)
    assert not stopped_at_end(said.replace(END_FILE, "a.yaml"), place)
    assert not stopped_at_end("Error: other\n" + said, place)
    assert not stopped_at_end("", place)
