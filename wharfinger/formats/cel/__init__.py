"""Rules in CEL, in a worker process: the engine, Kubernetes' functions, and the protocol between worker and daemon.

This folder may import ``schemas`` and the folders below it in the layers of pyproject.toml.
Only workers load the engine.
"""
