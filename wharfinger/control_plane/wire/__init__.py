"""The wire format of requests and answers: paths, media types, JSON, YAML and protobuf bodies, decoding into typed objects as in
Go, and the ``Status`` of a failed request with its field errors.

No function here reads stored objects. This folder may import ``kinds`` and the folders below it in the layers of pyproject.toml.
"""
