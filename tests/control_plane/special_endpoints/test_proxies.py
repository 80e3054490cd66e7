import httpx
import pytest

from wharfinger.control_plane.service import open_control_plane


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("namespaces/default/services/nosuch/proxy", 404, 'services "nosuch" not found'),
        ("namespaces/default/services/kubernetes/proxy/a/b", 503, 'no endpoints available for service "kubernetes"'),
        (
            "namespaces/default/services/https:kubernetes:443/proxy",
            503,
            'no endpoints available for service "https:kubernetes:443"',
        ),
        ("nodes/nosuch/proxy", 404, 'nodes "nosuch" not found'),
    ],
)
async def test_a_proxy_without_a_backend_is_an_error(path: str, code: int, said: str) -> None:
    async with (
        open_control_plane(simulate=False) as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test/api/v1/") as client,
    ):
        answer = await client.get(path)

    assert (answer.status_code, answer.json()["message"]) == (code, said)
