"""Traces of the daemon's work: a span for each task and each run of a hook, exported by OTLP if a receiver is configured.

The modules must not import any other folder of ``runtime``.
"""
