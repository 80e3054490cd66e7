from tests.control_plane.support.cel_evaluating import value_of
from tests.control_plane.support.policy_asking import asked
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.admission.inputs import RoleAuthorizer, authorizers, inputs
from wharfinger.control_plane.cel.library.authorizer import Check


def test_expressions_read_objects_parameters_and_the_namespace() -> None:
    admission, resource, _ = asked(data={"a": "b"})
    names = inputs(admission, resource, resource, {"x": 1})

    assert value_of("object.data.a == 'b' && oldObject == null && params.x == 1", **names) is True
    assert value_of("namespaceObject.metadata.name == 'default' && !has(namespaceObject.kind)", **names) is True


def test_cluster_scoped_objects_have_no_namespace_object() -> None:
    admission, resource, _ = asked("namespaces")

    assert inputs(admission, resource, resource, None)["namespaceObject"] is None


def test_authorizer_variables_check_permissions() -> None:
    admission, _, backend = asked()

    assert set(authorizers(admission)) == {"authorizer", "authorizer.requestResource"}
    asker = RoleAuthorizer(backend, User("u", ("system:authenticated",)))
    assert not asker.decide(Check(asker, resource="pods"), "get").allowed
    assert asker.decide(Check(asker, path="/healthz"), "get").allowed
    account = asker.account("n", "a")
    assert (account.user.name, account.user.groups[-1]) == ("system:serviceaccount:n:a", "system:authenticated")
