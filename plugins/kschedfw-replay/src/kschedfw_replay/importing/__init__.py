"""Recordings from what other tools wrote: audit logs, traces of SimKube, recordings of kube-scheduler-simulator."""
