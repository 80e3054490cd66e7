import httpx

from wharfinger.control_plane.service import open_control_plane


async def test_reviews_have_managed_fields_and_no_unknown_fields() -> None:
    async with (
        open_control_plane(simulate=False) as control_plane,
        httpx.AsyncClient(
            transport=control_plane.transport(), base_url="http://test", headers={"user-agent": "test/1"}
        ) as client,
    ):
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        spec = {"resourceAttributes": {"verb": "get", "resource": "pods", "name": ""}}
        done = await client.post(path, json={"spec": spec, "status": {"allowed": False}})
        strange = await client.post(f"{path}?fieldValidation=Strict", json={"spec": {**spec, "foo": 1}})

        assert done.status_code == 201
        assert done.json()["status"]["allowed"] is True
        assert done.json()["spec"] == {"resourceAttributes": {"verb": "get", "resource": "pods"}}
        assert done.json()["metadata"]["managedFields"][0]["manager"] == "test"
        assert (strange.status_code, "spec.foo" in strange.text) == (400, True)
