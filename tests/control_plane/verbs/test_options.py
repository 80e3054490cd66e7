import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.verbs.options import (
    DeleteOptions,
    FieldValidation,
    default_manager,
    parse_delete_options,
    parse_list_options,
    parse_write_options,
    resource_version_of,
)
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject

PARAMETERS = (
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "labelSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "watch",
    "timeoutSeconds",
    "propagationPolicy",
    "orphanDependents",
)
QUERIES = st.dictionaries(
    st.sampled_from(PARAMETERS),
    st.sampled_from(["", "1", "0", "-3", "true", "false", "All", "Exact", "NotOlderThan", "Orphan", "x", "Strict"]).map(
        lambda value: (value,)
    ),
    max_size=5,
)


def test_the_default_manager_comes_from_the_user_agent() -> None:
    assert default_manager("kubectl/v1.37.1 (linux/amd64)") == "kubectl"
    assert default_manager("") == "unknown"
    assert default_manager("a\x00b/1") == "ab"
    assert len(default_manager("é" * 200).encode()) <= 128


def test_write_options_are_parsed() -> None:
    options = parse_write_options(
        {"dryRun": ("All",), "fieldManager": ("me",), "force": ("true",)}, "x/1", "PatchOptions"
    )

    assert (options.manager, options.dry_run, options.force, options.validation) == (
        "me",
        True,
        True,
        FieldValidation.WARN,
    )
    strict = parse_write_options({"fieldValidation": ("Strict",)}, "x/1", "CreateOptions")
    assert (strict.manager, strict.validation) == ("x", FieldValidation.STRICT)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"dryRun": ("No",)}, 'dryRun: Unsupported value: ["No"]: supported values: "All"'),
        ({"fieldValidation": ("Loose",)}, 'Unsupported value: "Loose"'),
        ({"fieldManager": ("x" * 129,)}, "may not be more than 128 bytes"),
        ({"fieldManager": ("a\nb",)}, "invalid character U+000A (at position 1)"),
    ],
)
def test_invalid_write_options_are_refused(query: dict[str, tuple[str, ...]], words: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_write_options(query, "x", "CreateOptions")
    assert caught.value.code == 422
    assert caught.value.message.startswith('CreateOptions.meta.k8s.io "" is invalid: ')
    assert words in caught.value.message


def test_apply_options_need_a_field_manager() -> None:
    assert parse_write_options({"fieldManager": ("a",), "force": ("true",)}, "x", "PatchOptions", apply=True).force
    parse_write_options({}, "x", "PatchOptions", apply=False)
    with pytest.raises(StatusError, match="is required for apply patch"):
        parse_write_options({}, "x", "PatchOptions", apply=True)
    with pytest.raises(StatusError, match="may not be specified for non-apply patch"):
        parse_write_options({"force": ("true",)}, "x", "PatchOptions", apply=False)


@pytest.mark.parametrize(
    ("query", "body", "options"),
    [
        ({}, None, DeleteOptions()),
        ({}, {}, DeleteOptions()),
        ({"propagationPolicy": ("Orphan",)}, None, DeleteOptions(propagation="Orphan")),
        ({"orphanDependents": ("true",)}, None, DeleteOptions(propagation="Orphan")),
        ({"dryRun": ("All",)}, None, DeleteOptions(dry_run=True)),
        ({}, {"dryRun": ["All"]}, DeleteOptions(dry_run=True)),
        (
            {"propagationPolicy": ("Orphan",)},
            {"propagationPolicy": "Foreground"},
            DeleteOptions(propagation="Foreground"),
        ),
        ({}, {"orphanDependents": False}, DeleteOptions(propagation="Background", not_orphaned=True)),
        ({}, {"preconditions": {"uid": "u", "resourceVersion": "3"}}, DeleteOptions(uid="u", resource_version="3")),
    ],
)
def test_delete_options_are_parsed(
    query: dict[str, tuple[str, ...]], body: JsonObject | None, options: DeleteOptions
) -> None:
    assert parse_delete_options(query, body) == options


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"propagationPolicy": "Never"}, 422),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
        ({"dryRun": ["Some"]}, 422),
    ],
)
def test_invalid_delete_options_are_refused(body: JsonObject, code: int) -> None:
    with pytest.raises(StatusError) as caught:
        parse_delete_options({}, body)
    assert caught.value.code == code


def test_list_options_are_parsed() -> None:
    options = parse_list_options(
        {"limit": ("5",), "labelSelector": ("a",), "resourceVersion": ("7",), "resourceVersionMatch": ("Exact",)}
    )

    assert (options.limit, options.label_selector, options.revision, options.match) == (5, "a", 7, "Exact")
    assert parse_list_options({"limit": ("-1",)}).limit == 0
    assert not parse_list_options({"watch": ("false",)}).watch
    assert parse_list_options({"watch": ("1",)}).watch
    assert parse_list_options({}, watch=True).watch


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"resourceVersion": "abc"}, 400, 'strconv.ParseUint: parsing "abc": invalid syntax'),
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden unless resourceVersion is provided"),
        ({"resourceVersion": "1", "resourceVersionMatch": "Exact", "continue": "x"}, 422, "forbidden when continue"),
        ({"resourceVersion": "1", "resourceVersionMatch": "Odd"}, 422, 'Unsupported value: "Odd"'),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422, 'forbidden for resourceVersion "0"'),
        ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
        ({"watch": "1", "sendInitialEvents": "true"}, 422, "requires setting resourceVersionMatch"),
        ({"watch": "1", "resourceVersionMatch": "Exact"}, 422, "forbidden for watch unless sendInitialEvents"),
    ],
)
def test_invalid_list_options_are_refused(query: dict[str, str], code: int, words: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_list_options({name: (value,) for name, value in query.items()})
    assert caught.value.code == code
    assert words in caught.value.message


def test_the_resource_version_of_an_object_is_read() -> None:
    assert resource_version_of({"metadata": {"resourceVersion": "5"}}) == 5
    assert resource_version_of({"metadata": {"resourceVersion": "0"}}) is None
    assert resource_version_of({}) is None
    with pytest.raises(StatusError, match="invalid syntax"):
        resource_version_of({"metadata": {"resourceVersion": "x"}})


@given(QUERIES)
def test_any_query_is_read_or_refused(query: dict[str, tuple[str, ...]]) -> None:
    for parse in (
        lambda: parse_write_options(query, "x", "CreateOptions"),
        lambda: parse_delete_options(query, None),
        lambda: parse_list_options(query),
    ):
        try:
            parse()
        except StatusError as error:
            assert error.code in {400, 422, 500}
