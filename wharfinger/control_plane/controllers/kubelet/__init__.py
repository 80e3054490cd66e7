"""The simulation of the scheduler and the kubelets: it schedules and runs Pods, on simulated nodes or without nodes.

May import ``framework``.
"""
