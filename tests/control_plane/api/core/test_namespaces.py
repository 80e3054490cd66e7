from wharfinger.control_plane.api.core.namespaces import NAMESPACE_RULES, finalize_errors


def test_namespace_finalizers_need_a_domain() -> None:
    assert NAMESPACE_RULES.create({"spec": {"finalizers": ["kubernetes", "a.b/c"]}}) == []
    assert [error.field for error in NAMESPACE_RULES.create({"spec": {"finalizers": ["plain"]}})] == ["spec.finalizers"]
    assert [error.field for error in finalize_errors({"spec": {"finalizers": ["a.b/c", "plain"]}})] == [
        "spec.finalizers[1]"
    ]
    assert finalize_errors({"spec": {"finalizers": 5}}) == []


def test_the_phase_must_agree_with_the_deletion_timestamp() -> None:
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

    assert NAMESPACE_RULES.status({"metadata": {}, "status": {"phase": "Active"}}, {}) == []
    assert NAMESPACE_RULES.status({"metadata": dict(ending), "status": {"phase": "Terminating"}}, {}) == []
    assert len(NAMESPACE_RULES.status({"metadata": dict(ending), "status": {"phase": "Active"}}, {})) == 1
