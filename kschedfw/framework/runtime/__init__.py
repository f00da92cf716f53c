"""What runs the plugins of a profile."""
