import httpx

from wharfinger.control_plane.service import open_control_plane

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def test_components_are_healthy_and_the_kind_is_deprecated() -> None:
    async with (
        open_control_plane(simulate=False) as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test") as client,
    ):
        everything = await client.get("/api/v1/componentstatuses")
        one = await client.get("/api/v1/componentstatuses/etcd-0")
        table = await client.get("/api/v1/componentstatuses", headers={"accept": TABLE})
        none = await client.get("/api/v1/componentstatuses/nosuch")
        written = await client.post("/api/v1/componentstatuses", json={})

    assert [item["metadata"]["name"] for item in everything.json()["items"]] == [
        "controller-manager",
        "scheduler",
        "etcd-0",
    ]
    assert everything.headers["warning"] == '299 - "v1 ComponentStatus is deprecated in v1.19+"'
    assert one.json()["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
    assert [row["cells"] for row in table.json()["rows"]][2] == ["etcd-0", "Healthy", "ok", ""]
    assert none.json()["message"] == 'componentstatus "nosuch" not found'
    assert written.status_code == 405
