"""The words for texts that are no expressions."""

from wharfinger.control_plane.cel.syntax.grammar_errors import syntax_errors


def test_places() -> None:
    assert syntax_errors("1 +").startswith("ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting")
    assert "mismatched input 'false' expecting IDENTIFIER" in syntax_errors("true.false")
    assert "'?'" in syntax_errors("a[")
