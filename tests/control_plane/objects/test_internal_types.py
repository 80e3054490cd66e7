"""The internal types of an API server, as its messages print them."""

from wharfinger.control_plane.objects.internal_types import internal_difference, internal_form


def test_the_internal_form_has_all_fields_of_a_struct() -> None:
    assert internal_form("core.Toleration", {"key": "a", "tolerationSeconds": 0}) == {
        "Key": "a",
        "Operator": "",
        "Value": "",
        "Effect": "",
        "TolerationSeconds": 0,
    }


def test_the_metadata_of_a_template_is_embedded() -> None:
    form = internal_form("core.PodTemplateSpec", {"metadata": {"labels": {"b": "1", "a": "2"}}, "spec": {}})
    assert list(form) == ["labels", "Spec"]
    assert list(form["labels"]) == ["a", "b"] if isinstance(form["labels"], dict) else False


def test_host_fields_are_in_the_security_context() -> None:
    context = internal_form("core.PodSpec", {"hostNetwork": True, "serviceAccount": "a"})["SecurityContext"]
    assert isinstance(context, dict)
    assert context["HostNetwork"] is True


def test_a_difference_escapes_html() -> None:
    said = internal_difference("core.PodOS", {"name": "<a>"}, {"name": "b"})
    assert said == '@@ -1,3 +1,3 @@\n {\n- "Name": "\\u003ca\\u003e"\n+ "Name": "b"\n }\n'
    assert internal_difference("core.PodOS", {}, {}) == ""
