"""The simulation of the scheduler and the kubelets: it schedules and runs Pods, on simulated nodes or without nodes.

This folder may import ``framework``.
"""
