"""Answers of hooks to the reviews of API servers: answers in time, late or invalid answers, and no answer."""

import json
from pathlib import Path

import pytest

from tests.runtime.support.webhook_package import CONVERSION, HOOKS, RULES, shell_hook, validating
from tests.runtime.support.webhook_world import crontab, open_served
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.hooks.webhooks.addresses import Address, ReviewKind
from wharfinger.httpd.messages import Request
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.admission import review_slots
from wharfinger.runtime.admission.hook_reviewer import HookReviewer
from wharfinger.runtime.resources.identity import ModuleId

pytestmark = pytest.mark.slow
WEBHOOK = "private-repo-policy-example-com"


def review(kind: str = "AdmissionReview", api_version: str = "admission.k8s.io/v1", **request: object) -> Request:
    document = {"apiVersion": api_version, "kind": kind, "request": {"uid": "u", **request}}
    return Request("POST", "/", {"timeout": ("10s",)}, {}, json.dumps(document).encode())


def converting(desired: str, *versions: str) -> Request:
    objects = [crontab("a", "x", "*", version) for version in versions]
    return review("ConversionReview", "apiextensions.k8s.io/v1", desiredAPIVersion=desired, objects=objects)


async def test_hooks_validate_mutate_and_convert_objects(tmp_path: Path) -> None:
    async with open_served(tmp_path) as served:
        await served.install(HOOKS)
        assert "Only images from repo.example.com are allowed" in await served.try_to_create(
            "a", "docker.example.org/x"
        )
        assert await served.try_to_create("a") == ""
        resource = await served.world.client.resource_type("stable.example.com/v1alpha1", "CronTab")
        shown = await served.world.client.get(ObjectKey(resource, "prod", "a"))
        assert shown["spec"] == {"cron": ["*", "*"], "image": "repo.example.com/x", "replicas": 333}
        reviewer = HookReviewer(served.world.runtime)
        conversion = Address("crons", ReviewKind.CONVERSION, "crontabs.stable.example.com")
        answer = await reviewer.answer(conversion, converting("stable.example.com/v9", "v1alpha2"))
        assert b"there is no chain of conversions from stable.example.com/v1alpha2" in answer.body
        answer = await reviewer.answer(Address("crons", ReviewKind.CONVERSION, "x.y"), converting("v"))
        assert b"no hook of crons converts x.y" in answer.body
        answer = await reviewer.answer(Address("crons", ReviewKind.VALIDATING, "other"), review())
        assert (answer.status, answer.body) == (404, b"no hook found for 'crons' 'other'\n")
        answer = await reviewer.answer(
            Address("crons", ReviewKind.VALIDATING, WEBHOOK), Request("POST", "/", {}, {}, b"x")
        )
        assert (answer.status, answer.body[:20]) == (400, b"Invalid JSON payload")
        for kind, code in ((ReviewKind.VALIDATING, 503), (ReviewKind.CONVERSION, 200)):
            asked = converting("v") if kind is ReviewKind.CONVERSION else review()
            answer = await reviewer.answer(Address("unknown", kind, WEBHOOK), asked)
            assert (answer.status, b"not loaded" in answer.body) == (code, True)


async def test_a_package_that_moves_to_another_daemon_still_validates(tmp_path: Path) -> None:
    """Until the webhooks of a moved package are withdrawn, its hooks or its failure policy still decide about reviews."""
    async with open_served(tmp_path) as served:
        await served.install({"validating.sh": validating("Fail", timeout_s=10, more="exit 1")})
        reviewer, address = HookReviewer(served.world.runtime), Address("crons", ReviewKind.VALIDATING, WEBHOOK)
        assert not served.world.runtime.leave(ModuleId("crons"))
        answer = await reviewer.answer(address, review())
        assert answer.status == 200
        assert find(json.loads(answer.body), "response", "allowed") is False


FAULTS = {
    "hangs": ("sleep 600", "did not answer within 0.8 s"),
    "garbage": ('echo "<html>" >"$VALIDATING_RESPONSE_PATH"; exit 0', "its answer is refused"),
    "silence": ("exit 0", "the file is empty"),
    "failure": ("echo broken >&2; exit 3", "broken"),
    "values": (
        'echo \'{"op":"add","path":"/crons/a","value":1}\' >"$VALUES_JSON_PATCH_PATH"; exit 0',
        "it changed values",
    ),
}


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_without_an_answer_the_failure_policy_decides(tmp_path: Path, fault: str, policy: str) -> None:
    body, why = FAULTS[fault]
    async with open_served(tmp_path) as served:
        hook = validating(policy, timeout_s=1 if fault == "hangs" else 30, more=body)
        await served.install({"validating.sh": hook})
        refused = await served.try_to_create("a")
        assert bool(refused) is (policy == "Fail")
        assert why in refused or policy == "Ignore"


async def test_a_hook_waiting_for_another_hook_of_its_package_releases_its_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_slots, "AT_ONCE", 1)
    made = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "judged", "namespace": "prod"}}'
    asking = validating(more=f'echo \'{{"operation": "Create", "object": {made}}}\' >>"$KUBERNETES_PATCH_PATH"')
    judging = (
        validating(more='echo \'{"allowed": true}\' >"$VALIDATING_RESPONSE_PATH"; exit 0')
        .replace("private-repo-policy", "maps")
        .replace(RULES, '[{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]')
    )
    async with open_served(tmp_path) as served:
        await served.install({"asking.sh": asking, "judging.sh": judging})
        assert await served.try_to_create("a") == ""
        kind = await served.world.client.resource_type("v1", "ConfigMap")
        assert await served.world.client.get(ObjectKey(kind, "prod", "judged"))


async def test_a_conversion_may_use_intermediate_versions(tmp_path: Path) -> None:
    config = (
        "configVersion: v1\nkubernetesCustomResourceConversion:\n- {name: up, crdName: crontabs.stable.example.com, "
        "conversions: [{fromVersion: v1alpha2, toVersion: v1beta1}]}\n"
    )
    body = """__main__() {
  converted=$(context::jq '.review.request.objects | map(.apiVersion = "stable.example.com/v1beta1" | .spec.upped = true)')
  echo "{\\"convertedObjects\\": $converted}" >"$CONVERSION_RESPONSE_PATH"
}"""
    async with open_served(tmp_path) as served:
        await served.install({"conversion.sh": CONVERSION, "up.sh": shell_hook(config, body)})
        reviewer = HookReviewer(served.world.runtime)
        address = Address("crons", ReviewKind.CONVERSION, "crontabs.stable.example.com")
        request: JsonObject = crontab("a", "x", ["*", "1"], "v1alpha1")
        asked = review(
            "ConversionReview",
            "apiextensions.k8s.io/v1",
            desiredAPIVersion="stable.example.com/v1beta1",
            objects=[crontab("b", "x", "2", "v1alpha2"), request],
        )
        answer = json.loads((await reviewer.answer(address, asked)).body)
        found = find(answer, "response", "convertedObjects")
        assert isinstance(found, list), answer
        assert [find(one, "spec", "cron") for one in found] == ["2", "* 1"]
        assert [find(one, "apiVersion") for one in found] == ["stable.example.com/v1beta1"] * 2
        assert all(find(one, "spec", "upped") for one in found)
