"""What a kube-controller-manager does, simulated: plain users of a ClusterClient that bring an embedded cluster to life."""
