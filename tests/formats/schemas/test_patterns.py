r"""Patterns, compared with the documented syntax of Go's regexp package and of RE2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.schemas.patterns import MAX_LENGTH, PatternError, matcher, read_pattern


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("^[a-z]([-a-z0-9]*[a-z0-9])?$", ["a", "a-b"], ["a-", "A", "a\n", ""]),
        (r"^\d+$", ["12"], ["٣"]),
        (r"^\w+$", ["a_1"], ["é"]),
        (r"^\p{L}+$", ["é"], ["1"]),
        ("(?i)^on$", ["ON", "on"], ["no"]),
        ("^(?:a|b)$", ["a"], ["c"]),
        ("^(?P<x>a)(?<y>b)$", ["ab"], ["a"]),
        ("b", ["abc"], ["ac"]),
        (r"^[[:alpha:]]+$", ["ab"], ["a1"]),
        # These are plain characters in Go.
        ("^[[a]+$", ["[a["], ["b"]),
        ("^[]a]+$", ["]a"], ["b"]),
        ("^[^]a]+$", ["b["], ["]"]),
        ("^[a&&b~~c]+$", ["a&b~c"], ["d"]),
        ("^{{ [a-z]+ }}$", ["{{ x }}"], ["x"]),
        ("^a{,2}$", ["a{,2}"], ["aa"]),
        ("^a{2}b{1,}c{0,1}$", ["aabb", "aabc"], ["ab"]),
        (r"^\Qa.b[\E+$", ["a.b[["], ["axb["]),
        (r"^[\Q]-\E]+$", ["]-"], ["a"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"^\/a\-b\_$", ["/a-b_"], ["a"]),
        (r"^[\w.\]\[-]+$", ["a.[]-"], ["é"]),
        (r"\Aa\z", ["a"], ["a\n"]),
        (r"^[\s]\s$", ["\t "], ["\u2003 ", " \u2003"]),
        (r"^\S\S$", ["\u2003a"], [" a"]),
        (r"^\pL\PL\p{Greek}\p{^L}\P{^L}[\pN]$", ["a1\u03b11a1"], ["11\u03b11a1"]),
        (r"^\x41\x{42}\103\0\12\a\v$", ["ABC\0\n\x07\v"], ["ABC"]),
        (r"^[[:punct:][:space:]x]+$", ["[]\\^`{~!/:@ \tx"], ["a", "1"]),
        (r"^[\S-]+$", ["a-", "\u00a0", "\x0b"], ["a b", "\t"]),
        (r"^[^\S]+$", [" \t\n\f\r"], ["a", "\u00a0", "\x0b"]),
        (r"^[[:^alpha:]x]+$", ["1é-x"], ["a", "y"]),
        (r"^[^[:^digit:]]+$", ["12"], ["a", "é"]),
    ],
)
def test_patterns_match_as_in_go(pattern: str, fitting: list[str], other: list[str]) -> None:
    validator = matcher(read_pattern(pattern))

    assert [text for text in (*fitting, *other) if validator.is_valid(text)] == fitting


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("a(?=b)", "has a look-ahead: patterns are Go's (RE2), which has no look-around"),
        ("^(?!default$)", "has a look-ahead"),
        ("(?<=a)b", "has a look-behind"),
        ("(?<!a)b", "has a look-behind"),
        (r"(a)\1", "has a back reference: patterns are Go's (RE2), which has none"),
        (r"(?P<q>a)(?P=q)", "has a group that Go's regular expressions do not have: '(?P='"),
        (r"\k<q>", "has a back reference"),
        ("(?>a)", "has a group that Go's"),
        ("(?#c)", "has a group that Go's"),
        (r"\cA", r"has an escape that Go's regular expressions do not have: '\\c'"),
        (r"\u0041", "has an escape that Go's"),
        (r"\p{", "has an escape that Go's"),
        ("[[:^letters:]]", "has [:^letters:]; the classes alnum, "),
        ("[[:letters:]]", "has [:letters:]; the classes alnum, "),
        ("(?si)[[:^upper:]]", "has [:^upper:] together with the flag i"),
        ("(?i:[^[:^word:]])", "has [:^word:] together with the flag i"),
        ("[a", "has a class that is not closed"),
        ("(a", "is not a valid regular expression of Go"),
        ("a\\", "is not a valid regular expression"),
        ("*a", "is not a valid regular expression"),
        (r"\Z", "has an escape that Go's"),
        (r"\pQ", "is not a valid regular expression"),
        ("[z-a]", "is not a valid regular expression"),
        ("((a{100}){100}){100}", "or is too large when compiled"),
        ("\ud800", "is not a valid regular expression"),
        ("a" * (MAX_LENGTH + 1), f"a pattern of {MAX_LENGTH + 1} characters is over the limit of {MAX_LENGTH}"),
    ],
)
def test_patterns_that_go_cannot_compile_are_refused(pattern: str, said: str) -> None:
    with pytest.raises(PatternError) as caught:
        read_pattern(pattern)

    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.text("ab[]^-&~\\QE{},1(?=:)|*+.$", max_size=15))
def test_any_pattern_is_accepted_or_refused(pattern: str) -> None:
    try:
        translated = read_pattern(pattern)
    except PatternError:
        return
    matcher(translated).is_valid("aab[]")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_quoted_text_matches_itself(text: str) -> None:
    text = text.replace("\\E", "")

    assert matcher(read_pattern(rf"^\Q{text}\E$")).is_valid(text)
