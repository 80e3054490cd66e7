"""Comparisons as Markdown, even of objects with hostile text."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.offline.output.test_diff_text import CHANGED, OLD, WHO
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.output.comparison import Comparison, ObjectChange
from wharfinger.offline.output.diff_markdown import diff_markdown
from wharfinger.offline.store.identity import object_id

CLAIM: JsonObject = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "n"},
    "spec": {},
}


def test_the_summary_comes_first_and_diffs_are_folded() -> None:
    claim = ObjectChange(object_id(CLAIM), CLAIM, None)
    text = diff_markdown(Comparison((*CHANGED.changes, claim), (WHO,)))
    assert text.startswith("**0 added, 1 changed, 1 deleted**\n\nDangers:\n\n* ` ")
    assert "Not compared, because they failed:\n\n* ` ConfigMap n/x `\n" in text
    assert "<details>\n<summary>ConfigMap n/x: changed</summary>\n\n```diff\n--- ConfigMap n/x\n" in text
    assert text.count("<details>") == text.count("</details>") == 2
    assert "\x1b" not in text


def test_an_empty_comparison_reports_no_differences() -> None:
    assert diff_markdown(Comparison((), ())) == "**No differences.**\n"


@given(st.text(alphabet="`~<>/|*_a \n\x1b", max_size=40))
def test_text_cannot_end_its_block_or_become_markup(hostile: str) -> None:
    new: JsonObject = {**OLD, "data": {"a": hostile, hostile: "x"}, "metadata": {"name": f"</summary>{hostile}"}}
    text = diff_markdown(Comparison((ObjectChange(object_id(new), OLD, new),), ()))
    opening = re.search("^(`{3,})diff$", text, re.MULTILINE)
    assert opening is not None
    inside, _, after = text[opening.end() :].rpartition(f"\n{opening[1]}\n")
    assert after == "\n</details>\n"
    assert opening[1] not in inside
    assert text[: opening.start()].count("<") == 3  # The three are ``<details>``, ``<summary>`` and ``</summary>``.
