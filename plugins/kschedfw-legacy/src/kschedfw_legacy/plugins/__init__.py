"""Plugins that kube-scheduler has dropped, under the names they had; for Policies and other old configurations."""
