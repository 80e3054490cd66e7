"""A simulated kube-controller-manager, scheduler and kubelets: observers of the backend that write through the verbs.

``manager`` runs the controllers. A small controller is a module here; ``framework``, ``workloads``, ``kubelet`` and ``server``
are folders of this package. May import ``verbs``, ``bootstrap`` and everything below; never ``http``.
"""
