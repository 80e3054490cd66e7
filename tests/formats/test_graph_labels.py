"""Untrusted text in the labels of graphs."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.graph_labels import dot_label, mermaid_label


def test_characters_that_could_be_misread_are_escaped() -> None:
    assert dot_label('a "b" \\N &lt; c') == 'a \\"b\\" \\\\N &amp;lt; c'
    assert mermaid_label('end["x"]; #1') == "end#91;#34;x#34;#93;#59; #35;1"


@given(st.text())
def test_no_text_ends_its_label(text: str) -> None:
    escaped = dot_label(text)
    assert '"' not in escaped.replace("\\\\", "").replace('\\"', "")
    assert not set(mermaid_label(text)) & set('"[](){}<>|\n')
