"""Advice about a cluster: why pods are pending, how many more fit, which nodes can be drained, added and removed."""
