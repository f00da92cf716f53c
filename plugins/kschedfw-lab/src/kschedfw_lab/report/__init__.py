"""What the results of a sweep say: means with intervals, differences from a baseline, and a page with plots."""
