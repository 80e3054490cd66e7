"""Random JSON objects whose members have the names that validation rules read."""

from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonValue

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 70000)
    | st.sampled_from(
        ["", "a", "A_", "None", "10.0.0.1", "1Gi", "-1", "LoadBalancer", "ExternalName", "Local", "In", "Exists"]
    )
)


def shapes(*names: str) -> st.SearchStrategy[dict[str, JsonValue]]:
    """Return a strategy for nested objects whose members have these names."""
    inner: st.SearchStrategy[JsonValue] = st.recursive(
        _SCALARS,
        lambda deeper: st.lists(deeper, max_size=2) | st.dictionaries(st.sampled_from(names), deeper, max_size=4),
        max_leaves=8,
    )
    return st.dictionaries(st.sampled_from(names), inner, max_size=5)
