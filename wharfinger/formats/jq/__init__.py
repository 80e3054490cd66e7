"""jq in a worker process: the program of the worker, and its protocol with the daemon.

This folder may import the folders and modules of ``formats`` that are below it in the layers of pyproject.toml.
"""
