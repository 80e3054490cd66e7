"""What the server itself writes into an object before it is stored (kube-apiserver's strategies), by area.

Unlike defaults, which field managers own as if the client had written them, nobody owns what is written here.
"""
