"""The forms in which objects and errors are transferred: paths, media types, JSON, YAML and protobuf bodies, decoding into
typed objects as Go does it, and the ``Status`` of a failed request with its field errors.

Functions from bytes to values and back; nothing here reads stored objects. May import ``kinds``.
"""
