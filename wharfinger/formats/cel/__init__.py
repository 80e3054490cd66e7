"""Rules in CEL, in a worker process: the engine, Kubernetes' functions, and the protocol between worker and daemon.

May import ``schemas`` and below; only workers load the engine.
"""
