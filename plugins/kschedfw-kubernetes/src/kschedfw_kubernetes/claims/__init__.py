"""Claims: several schedulers are active on one cluster at the same time. Only `run --shared-state` imports this."""
