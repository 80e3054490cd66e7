import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.end_mark import END_FILE, END_TEMPLATE
from wharfinger.packages.rendering.helm_output import MAX_MESSAGE, Document, clean_message, read_output, split_documents

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"
HOOK = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations:\n    helm.sh/hook: pre-install\n"


def doc(source: str, text: str) -> str:
    return f"---\n# Source: {source}\n{text}\n"


def names(objects: tuple[JsonObject, ...]) -> list[JsonValue]:
    return [find(obj, "metadata", "name") for obj in objects]


def test_crds_hooks_and_objects_are_separated_in_order() -> None:
    output = (
        doc("web/crds/one.yaml", CONFIG.format(name="crd1") + "---\n" + CONFIG.format(name="crd2"))
        + doc("web/charts/db/crds/x/two.yaml", CONFIG.format(name="crd3"))
        + doc("web/templates/b.yaml", CONFIG.format(name="b"))
        + doc("web/templates/crds/a.yaml", CONFIG.format(name="a"))
        + doc("web/templates/hook.yaml", HOOK.format(name="hook"))
    )
    rendered = read_output(output)
    assert names(rendered.crds) == ["crd1", "crd2", "crd3"]
    assert names(rendered.hooks) == ["hook"]
    assert names(rendered.objects) == ["b", "a"]
    assert rendered.manifest == (
        "---\n# Source: web/templates/b.yaml\n"
        + CONFIG.format(name="b")
        + "\n---\n# Source: web/templates/crds/a.yaml\n"
        + CONFIG.format(name="a")
        + "\n"
    )


def test_empty_output_has_no_objects() -> None:
    for output in ("", "\n", "---\n", "---\n# Source: a/b\n", "---\n# Source: a/b\n# only a comment\n"):
        rendered = read_output(output)
        assert (rendered.crds, rendered.hooks, rendered.objects, rendered.manifest) == ((), (), (), "")


@pytest.mark.parametrize(
    ("source", "is_crd"),
    [
        ("web/crds/a.yaml", True),
        ("web/crds/deep/a.yaml", True),
        ("web/charts/db/crds/a.yaml", True),
        ("web/charts/db/charts/x/crds/a.yaml", True),
        ("web/templates/crds/a.yaml", False),
        ("web/charts/crds/templates/a.yaml", False),
        ("web/charts/db/templates/crds/a.yaml", False),
        ("crds/templates/a.yaml", False),
        ("web/crds", False),
        ("", False),
    ],
)
def test_crds_are_recognized_by_their_source_path(source: str, is_crd: bool) -> None:
    assert Document(source, "").is_crd is is_crd


def test_dashes_inside_a_document_do_not_split_it() -> None:
    text = CONFIG.format(name="a") + "data:\n  x: |\n    ---\n    # Source: not/this\n  q: '--- z'\n"
    [document] = split_documents(doc("web/templates/a.yaml", text))
    assert document.text.endswith(text + "\n")
    rendered = read_output(doc("web/templates/a.yaml", text))
    assert rendered.objects[0]["data"] == {"x": "---\n# Source: not/this\n", "q": "--- z"}


def test_trailing_lines_of_block_scalars_are_retained() -> None:
    """The empty lines at the end of a document belong to its last block scalar. After a hook, Helm prints one line break more,
    which does not belong to the hook.
    """
    block = "data:\n  text: |+\n    a\n\n"
    end = doc(f"web/templates/{END_FILE}", END_TEMPLATE)
    rendered = read_output(
        doc("web/templates/a.yaml", CONFIG.format(name="a") + block)
        + doc("web/templates/b.yaml", CONFIG.format(name="b") + block)
        + end
        + doc("web/templates/h.yaml", HOOK.format(name="h") + block)
    )
    assert names(rendered.objects) == ["a", "b"]
    assert [find(obj, "data", "text") for obj in rendered.objects] == ["a\n\n\n"] * 2
    assert [find(obj, "data", "text") for obj in rendered.hooks] == ["a\n\n"]
    assert rendered.manifest == "".join(
        doc(f"web/templates/{name}.yaml", CONFIG.format(name=name) + block) for name in ("a", "b")
    )


def test_a_list_is_replaced_by_its_items() -> None:
    listed = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: one}\n"
    rendered = read_output(
        doc("web/templates/l.yaml", listed) + doc("web/templates/e.yaml", "apiVersion: v1\nkind: List\n")
    )
    assert names(rendered.objects) == ["one"]
    assert "kind: List" in rendered.manifest


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "line"),
        ("just text", "expected an object"),
        ("- a", "expected an object"),
        ("kind: X", "without apiVersion or kind"),
        ("apiVersion: v1", "without apiVersion or kind"),
        ("apiVersion: v1\nkind: [a]", "expected a string"),
        ("apiVersion: v1\nkind: List\nitems: [a]", "expected an object"),
        ("apiVersion: v1\nkind: List\nitems: [{}]", "without apiVersion or kind"),
    ],
)
def test_invalid_documents_are_refused_with_their_template(text: str, why: str) -> None:
    with pytest.raises(RenderError, match=why) as caught:
        read_output(doc("web/templates/bad.yaml", text))
    assert str(caught.value).count("web/templates/bad.yaml") == 1
    assert not caught.value.transient


def test_too_many_documents_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.packages.rendering.helm_output.MAX_DOCUMENTS", 2)
    with pytest.raises(RenderError, match="more than 2 documents"):
        split_documents("---\na\n---\nb\n---\nc\n")


@given(st.text(alphabet="-\n# Source:ab\t{}", max_size=80))
def test_no_text_is_lost_between_documents(output: str) -> None:
    kept = "".join(document.text for document in split_documents(output))
    for line in output.splitlines():
        assert line.startswith("---") or not line.strip() or line.strip() in kept


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        ("Error: template: x\n\nUse --debug flag to render out invalid YAML\n", "template: x"),
        ("WARNING: Kubernetes configuration file is group-readable\nError: a\nb\n", "a b"),
        ("level=WARN msg=x\ntime=1 level=ERROR\nError: a\n", "a"),
        ("coalesce.go:1: warning\nno error word\n", "no error word"),
        ("Error: first\nError: second\n", "second"),
        ("Error: open /scratch/x/values.yaml: gone\n", "open values: gone"),
        ("Error: a\x1b[31mb\n", "a [31mb"),
        ("", ""),
    ],
)
def test_messages_of_helm_are_cleaned(stderr: str, message: str) -> None:
    assert clean_message(stderr, {"/scratch/x/values.yaml": "values"}) == message


def test_messages_of_helm_are_limited_in_length() -> None:
    message = clean_message("Error: " + "x" * 5_000, {})
    assert len(message) == MAX_MESSAGE
    assert message.endswith("…")
