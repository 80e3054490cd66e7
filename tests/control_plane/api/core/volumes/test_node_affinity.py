from wharfinger.control_plane.api.core.volumes.node_affinity import (
    affinity_change_errors,
    affinity_warnings,
    deprecated_label,
)
from wharfinger.formats.json.value import JsonObject


def affinity(*keys: str) -> JsonObject:
    expressions: list[JsonObject] = [{"key": key, "operator": "Exists"} for key in keys]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}


def test_deprecated_labels_may_be_renamed() -> None:
    assert affinity_change_errors(affinity("kubernetes.io/os"), affinity("beta.kubernetes.io/os")) == []
    assert affinity_change_errors(affinity("a"), affinity("a")) == []
    assert len(affinity_change_errors(affinity("kubernetes.io/os"), affinity("beta.kubernetes.io/arch"))) == 1
    assert len(affinity_change_errors(affinity("a", "b"), affinity("a"))) == 1
    assert len(affinity_change_errors(None, affinity("a"))) == 1
    assert len(affinity_change_errors({"required": {"nodeSelectorTerms": []}}, affinity("a"))) == 1


def test_deprecated_labels_cause_warnings() -> None:
    [said] = affinity_warnings(affinity("a", "beta.kubernetes.io/os"), "spec.nodeAffinity")
    assert said.startswith(
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[1].key: beta.kubernetes.io/os is"
    )
    assert said.endswith('deprecated since v1.14; use "kubernetes.io/os" instead')
    assert affinity_warnings(None, "x") == []
    assert deprecated_label("a") == ""
