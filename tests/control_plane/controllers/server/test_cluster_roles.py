import httpx

from wharfinger.control_plane.service import open_control_plane
from wharfinger.formats.json.value import JsonObject

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
RULE: JsonObject = {"apiGroups": ["x.io"], "resources": ["things"], "verbs": ["get"]}


async def rules(client: httpx.AsyncClient, name: str) -> list[JsonObject]:
    found: list[JsonObject] = (await client.get(f"{ROLES}/{name}")).json()["rules"] or []
    return found


async def test_an_aggregated_role_has_the_rules_of_the_selected_roles() -> None:
    async with (
        open_control_plane(simulate=False) as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test") as client,
    ):
        part = {"metadata": {"name": "part", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}
        before = await rules(client, "view")
        await client.post(ROLES, json={**part, "rules": [{**RULE, "verbs": ["get"]}]})

        assert [rule for rule in await rules(client, "view") if rule not in before] == [RULE]
        assert RULE in await rules(client, "edit")
        assert RULE in await rules(client, "admin")
        await client.delete(f"{ROLES}/part")
        assert await rules(client, "view") == before


async def test_aggregation_of_roles_in_a_cycle_terminates() -> None:
    async with (
        open_control_plane(simulate=False) as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test") as client,
    ):
        role: JsonObject = {}
        for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
            role = {
                "metadata": {"name": name, "labels": {"of": name}},
                "rules": [{**RULE, "resources": [name]}],
                "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"of": other}}]},
            }
            assert (await client.post(ROLES, json=role)).status_code == 201
        changed = {**role, "rules": [RULE]}
        assert (await client.put(f"{ROLES}/c", json=changed)).status_code == 200
