"""CostAware: places pods on the nodes where they cost least."""

from kschedfw_costaware.args import CostAwareArgs, InstancePrice
from kschedfw_costaware.plugin import MAX_HOURLY_PRICE, CostAware

__all__ = ["MAX_HOURLY_PRICE", "CostAware", "CostAwareArgs", "InstancePrice"]
