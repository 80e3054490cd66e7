"""Valid names of objects and namespaces, and names that are unsafe in a path or selector."""

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.hooks.config.object_names import need_namespace, need_object_name

NOT_NAMES = ("", ".", "..", "a/b", "../x?y", "a,metadata.namespace=x", "a=b", "a?dryRun=All", "a#b", "a\nb", "a\n", "a%2f", "-a",
             "a.", "ä", "a b")  # fmt: skip


@pytest.mark.parametrize("name", ["a", "web.v1", "system:node", "Upper_case", "a" * 253, "0"])
def test_valid_object_names_are_accepted(name: str) -> None:
    assert need_object_name(name, "x") == name


@pytest.mark.parametrize("name", ["a", "kube-system", "a" * 63, "0"])
def test_valid_namespaces_are_accepted(name: str) -> None:
    assert need_namespace(name, "x") == name


@pytest.mark.parametrize("name", [*NOT_NAMES, "a" * 254])
def test_invalid_object_names_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match=r"x: .* is not a valid name of an object"):
        need_object_name(name, "x")


@pytest.mark.parametrize("name", [*NOT_NAMES, "a" * 64, "a.b", "A", "a:b"])
def test_invalid_namespaces_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match=r"x: .* is not a valid name of a namespace"):
        need_namespace(name, "x")
