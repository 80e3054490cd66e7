"""Sensitive keys: names of credentials, and names that only describe a credential."""

import pytest

from wharfinger.formats.redaction.sensitive_keys import is_sensitive_key, may_be_a_reference


@pytest.mark.parametrize(
    "key",
    [
        *(
            "password",
            "Password",
            "PASSWORD",
            "DB_PASSWORD",
            "dbPassword",
            "postgresql-password",
            "password1",
            "passwords",
        ),
        *(
            "passwd",
            "htpasswd",
            "passphrase",
            "pass",
            "DB_PASS",
            "dbPass",
            "pwd",
            "DB_PWD",
            "pw",
            "ADMIN_PW",
            "DB_PASS2",
        ),
        *(
            "token",
            "accessToken",
            "access_token",
            "bot-tokens",
            "identitytoken",
            "tokenBase64",
            "TOKEN_VALUE",
            "token.txt",
        ),
        *(
            "secret",
            "clientSecret",
            "client_secrets",
            "secretData",
            "credentials",
            "AWS_SECRET_ACCESS_KEY",
            "secretKey",
        ),
        *(
            "apiKey",
            "api-key",
            "APIKEY",
            "apiKeys",
            "privateKey",
            "private_key_pem",
            "ssh-privatekey",
            "id_rsa",
            "tls.key",
        ),
        *("ca.key", "client-key-data", "signingKey", "encryption-key", "auth", "authorization", "Proxy-Authorization"),
        *(".dockercfg", ".dockerconfigjson", "dockerconfig.json", "dockercfg", "kubeconfig", "kubeconfig.yaml"),
        *(
            "passwordHash",
            "connectionString",
            "Set-Cookie",
            "cookie",
            "jwt",
            ".netrc",
            ".pgpass",
            "--token",
            "-password",
        ),
        "x" * 10_000 + "_password",
    ],
)
def test_names_of_credentials_are_sensitive_keys(key: str) -> None:
    assert is_sensitive_key(key)


@pytest.mark.parametrize(
    "key",
    [
        *(
            "",
            "name",
            "secretName",
            "passwordSecretRef",
            "tokenExpirationSeconds",
            "secretKeyRef",
            "passwordFile",
            "keys",
        ),
        *("passwordKey", "tokenPath", "metadata", "bypass", "compass", "data", "values", "hash", "pod-template-hash"),
        *("author", "authority", "oauth2Enabled", "key", "monkey", "publicKey", "accessKeyId", "address", "secretive"),
        *("continue", "tokenizer", "passthrough", "123", "___", "annotations", "kubernetes.io/service-account.name"),
        "password" + "x" * 10_000,
    ],
)
def test_other_names_are_not_sensitive_keys(key: str) -> None:
    assert not is_sensitive_key(key)


def test_keys_of_secret_references_are_recognized() -> None:
    assert all(
        map(may_be_a_reference, ("secret", "imagePullSecrets", "serviceAccountToken", "tlsSecret", "credentials"))
    )
    assert not any(map(may_be_a_reference, ("password", "apiKey", "secretName", "privateKey")))
