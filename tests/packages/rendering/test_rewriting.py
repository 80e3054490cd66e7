"""Changes of rendered objects in the manifest. The text of all other objects stays the same."""

import pytest

from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.helm_output import read_output
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.packages.rendering.rewriting import rewritten

OUTPUT = """\
---
# Source: web/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: a}   # as the author wrote it
---
# Source: web/templates/b.yaml
apiVersion: v1
kind: Secret
metadata: {name: b}
---
# Source: web/templates/hook.yaml
apiVersion: v1
kind: Secret
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
"""


def marked(obj: JsonObject) -> JsonObject:
    return {**obj, "immutable": True} if obj["kind"] == "Secret" else obj


def test_objects_hooks_and_manifest_are_rewritten_consistently() -> None:
    before = read_output(OUTPUT)
    after = rewritten(before, marked)
    assert [obj.get("immutable") for obj in after.objects] == [None, True]
    assert [hook.get("immutable") for hook in after.hooks] == [True]
    assert "metadata: {name: a}   # as the author wrote it\n" in after.manifest
    assert "# Source: web/templates/b.yaml\n" in after.manifest
    assert "immutable: true" in after.manifest
    again = read_output(after.manifest)
    assert again.objects == after.objects
    assert find_str(before.objects[1], "immutable", default="not there") == "not there"


def test_an_identity_change_leaves_everything_unchanged() -> None:
    before = read_output(OUTPUT)
    assert rewritten(before, lambda obj: obj) == before


def test_an_invalid_manifest_is_an_error() -> None:
    with pytest.raises(RenderError):
        rewritten(Rendered((), (), (), "---\n- no object\n"), marked)
