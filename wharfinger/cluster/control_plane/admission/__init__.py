"""Built-in admission: what else a write depends on, or brings about, beside the object itself (kube-apiserver's plugins)."""
