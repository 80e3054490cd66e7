"""Helm's order."""

from wharfinger.cluster.install_order import INSTALL_ORDER, in_install_order, in_waves, rank
from wharfinger.cluster.resource import kind_of, name_of
from wharfinger.formats.json_value import JsonObject


def obj(kind: str, name: str = "x") -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def test_what_others_need_comes_first() -> None:
    kinds = ["Widget", "Deployment", "CustomResourceDefinition", "Namespace", "ServiceAccount", "Service", "Gadget"]
    assert [kind_of(one)[1] for one in in_install_order(map(obj, kinds))] == [
        "Namespace",
        "ServiceAccount",
        "CustomResourceDefinition",
        "Service",
        "Deployment",
        "Gadget",
        "Widget",
    ]


def test_equals_keep_their_order_unless_the_kind_is_unknown() -> None:
    known = in_install_order([obj("Secret", "b"), obj("Secret", "a")])
    unknown = in_install_order([obj("Widget", "b"), obj("Widget", "a")])
    assert [name_of(one) for one in known] == ["b", "a"]
    assert [name_of(one) for one in unknown] == ["a", "b"]


def test_a_wave_is_one_kind() -> None:
    waves = in_waves([obj("Widget"), obj("Pod", "a"), obj("Gadget"), obj("Namespace"), obj("Pod", "b")])
    assert [[kind_of(one)[1] for one in wave] for wave in waves] == [
        ["Namespace"],
        ["Pod", "Pod"],
        ["Gadget"],
        ["Widget"],
    ]
    assert in_waves([]) == []


def test_ranks() -> None:
    assert rank("PriorityClass") == 0
    assert rank("Widget") == len(INSTALL_ORDER)
    assert len(set(INSTALL_ORDER)) == len(INSTALL_ORDER)
