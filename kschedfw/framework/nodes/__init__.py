"""The cluster's state that plugins read: nodes, their pods, and columns of both."""
