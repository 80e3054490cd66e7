"""A simulated kube-controller-manager, scheduler and kubelets: they observe the backend, and write through ``verbs``.

``manager`` runs the controllers. A small controller is a module here; ``framework``, ``workloads``, ``kubelet`` and ``server``
are folders of this package. This folder may import ``verbs``, ``bootstrap`` and the folders below them in the layers of
pyproject.toml; never ``http``.
"""
