"""Plugins that kube-scheduler has dropped, under their former names, for Policies and other old configurations."""
