"""The runtime itself: the `Runtime`, which receives all requests about packages, the loop that carries out the decisions of the
packages' state machines, and the code that carries out the rounds of global hooks.

Other folders change the scheduler only by events that they pass to `Packages`, and the lifecycle store only when they add an
installed package (:mod:`~wharfinger.runtime.controllers.installed_packages`).

This folder may import ``tasks`` and the folders below ``tasks`` in the layers of pyproject.toml.
"""
