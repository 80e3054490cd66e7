import httpx

from wharfinger.control_plane.service import open_control_plane

TOKEN = {"authorization": "Bearer sesame"}
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


async def test_a_token_of_an_account_is_valid_for_requests_and_reviews() -> None:
    async with (
        open_control_plane(simulate=False, token="sesame") as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test", headers=TOKEN) as client,
    ):
        await client.post(ACCOUNTS, json={"metadata": {"name": "bot"}})
        made = (await client.post(f"{ACCOUNTS}/bot/token", json={"spec": {"audiences": []}})).json()
        token = made["status"]["token"]
        as_bot = {"authorization": f"Bearer {token}"}
        refused = await client.get("/api/v1/namespaces/default/secrets", headers=as_bot)
        me = await client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json={}, headers=as_bot)
        whose = (await client.post(REVIEWS, json={"spec": {"token": token}})).json()["status"]

        assert (made["apiVersion"], made["spec"]["expirationSeconds"]) == ("authentication.k8s.io/v1", 3600)
        assert refused.json()["message"].startswith('secrets is forbidden: User "system:serviceaccount:default:bot"')
        assert me.json()["status"]["userInfo"]["username"] == "system:serviceaccount:default:bot"
        assert (whose["authenticated"], whose["user"]["username"]) == (True, "system:serviceaccount:default:bot")
        await client.delete(f"{ACCOUNTS}/bot")
        assert (await client.get("/api", headers=as_bot)).status_code == 401
        gone = (await client.post(REVIEWS, json={"spec": {"token": token}})).json()["status"]
        assert gone == {"user": {}, "error": "[invalid bearer token, service account token has been invalidated]"}


async def test_token_requests_check_bound_objects_and_lifetimes() -> None:
    async with (
        open_control_plane(simulate=False) as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test") as client,
    ):
        await client.post(ACCOUNTS, json={"metadata": {"name": "bot"}})
        secret = await client.post("/api/v1/namespaces/default/secrets", json={"metadata": {"name": "s"}})
        reference = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
        good = await client.post(f"{ACCOUNTS}/bot/token", json={"spec": {"boundObjectRef": reference}})
        other = {**reference, "uid": "x" + secret.json()["metadata"]["uid"]}
        conflict = await client.post(f"{ACCOUNTS}/bot/token", json={"spec": {"boundObjectRef": other}})
        odd = await client.post(f"{ACCOUNTS}/bot/token", json={"spec": {"boundObjectRef": {"kind": "ConfigMap"}}})
        long = await client.post(f"{ACCOUNTS}/bot/token", json={"spec": {"expirationSeconds": 2**33}})

        assert good.status_code == 201
        assert (conflict.status_code, "does not match the UID in record" in conflict.text) == (409, True)
        assert (odd.status_code, long.status_code) == (400, 422)
