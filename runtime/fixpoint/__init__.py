"""The fixpoint engine: nodes with bodies, what they wait for, and when waiting is over."""
