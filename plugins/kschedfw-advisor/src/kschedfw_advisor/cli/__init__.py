"""The commands of this distribution, and what they print."""
