"""The group networking.k8s.io: Ingresses, NetworkPolicies, ServiceCIDRs and IPAddresses."""
