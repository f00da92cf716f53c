"""Dynamic resource allocation: devices for pods, as kube-scheduler's DynamicResources plugin finds them."""
