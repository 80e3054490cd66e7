"""Hypothesis strategies for JSON values, with strings that are difficult for YAML and JSON readers."""

from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject, JsonValue

AWKWARD_TEXT = [
    *(
        "y",
        "No",
        "null",
        "~",
        "",
        "0777",
        "08",
        "0b-1",
        "1e3",
        ".5_0",
        ".inf",
        "12:30:45",
        "2026-01-01",
        "<<",
        "=",
        "-",
        "?",
    ),
    *(
        "a: b",
        "a:",
        ":a",
        "- a",
        "# a",
        "a #b",
        "'",
        '"',
        "{",
        "[a",
        "a,b",
        "&a",
        "*a",
        "!a",
        "|",
        "> x",
        "%x",
        "@",
        "`",
        "\\",
    ),
    *(
        "---",
        "...",
        ":...",
        "--- a\nb",
        "a\n---\nb",
        "a\n...\nb\n",
        "\n",
        "\n\n",
        "a\n",
        "a\n\n",
        "\na",
        " a",
        "a ",
        "\ta",
    ),
    *(
        "a\tb",
        "a\n b\n",
        " a\nb",
        "a \nb",
        "a\n\tb",
        "\r\n",
        "a\rb",
        "\x00",
        "\x07",
        "\x1b[0m",
        "\x7f",
        "\x85",
        "\u2028",
    ),
    *("\ufeff", "\ufffe", "\u00a0", "\u200b", "\U0001f600", "a" * 200, "a b" * 100, "\\ud800", "\\/"),
]

texts = st.one_of(
    st.sampled_from(AWKWARD_TEXT),
    st.lists(st.sampled_from(AWKWARD_TEXT), max_size=4).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.text("ab \n\t:#-'\"\\%&*!|>?[]{},0123456789.e+_", max_size=20),
)
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
scalars: st.SearchStrategy[JsonValue] = st.one_of(st.none(), st.booleans(), numbers, texts)


def json_values(max_leaves: int = 15) -> st.SearchStrategy[JsonValue]:
    """Return a strategy for JSON values that YAML can express. Their integers have at most 64 bits."""

    def containers(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
        lists: st.SearchStrategy[JsonValue] = st.lists(inner, max_size=5)
        objects: st.SearchStrategy[JsonValue] = st.dictionaries(texts, inner, max_size=5)
        return st.one_of(lists, objects)

    return st.recursive(scalars, containers, max_leaves=max_leaves)


def json_objects(max_leaves: int = 15) -> st.SearchStrategy[JsonObject]:
    """Return a strategy for objects whose members are values of `json_values`."""
    return st.dictionaries(texts, json_values(max_leaves), max_size=5)
