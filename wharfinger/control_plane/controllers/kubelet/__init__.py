"""The simulation of the scheduler and the kubelets: Pods that are scheduled and run without nodes, and simulated nodes.

May import ``framework``.
"""
