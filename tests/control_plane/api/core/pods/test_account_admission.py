"""Admission of Pods by their service accounts, in cases that no recording of a real API server covers."""

import pytest

from tests.control_plane.support.pod_writes import backend, write
from wharfinger.control_plane.api.core.pods.account_admission import give_account
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, find, find_list

MIRROR: JsonObject = {"annotations": {"kubernetes.io/config.mirror": "x"}}


def test_a_missing_default_account_is_tolerated() -> None:
    pod: JsonObject = {"spec": {"containers": [{"name": "a"}], "volumes": [{"name": "kube-api-access-own"}]}}
    given = give_account(write(backend(), pod), pod)
    assert find(given, "spec", "serviceAccount") == "default"
    assert find(given, "spec", "containers", 0, "volumeMounts", 0, "name") == "kube-api-access-own"
    assert len(find_list(given, "spec", "volumes")) == 1


def test_updates_are_not_changed() -> None:
    pod: JsonObject = {"spec": {}}
    assert give_account(write(backend(), pod, pod), pod) is pod


@pytest.mark.parametrize(
    "spec",
    [
        {"serviceAccountName": "s"},
        {"containers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]},
        {"volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
    ],
)
def test_mirror_pods_may_not_use_accounts_or_secrets(spec: JsonObject) -> None:
    pod: JsonObject = {"metadata": MIRROR, "spec": spec}
    with pytest.raises(StatusError, match="a mirror pod may not"):
        give_account(write(backend(), pod), pod)
    plain: JsonObject = {"metadata": MIRROR, "spec": {}}
    assert give_account(write(backend(), plain), plain) is plain
