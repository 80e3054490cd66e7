"""The wire format of requests and answers: paths, media types, JSON, YAML and protobuf bodies, decoding into typed objects as in
Go, and the ``Status`` of a failed request with its field errors.

All functions convert bytes to values or back; none reads stored objects. May import ``kinds``.
"""
