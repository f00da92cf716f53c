"""CapacityScheduling: namespaces lend unused quota to one another, and take it back by preemption."""

from kschedfw_capacity.elastic_quota import ElasticQuota, ElasticQuotaSpec
from kschedfw_capacity.plugin import CapacityScheduling

__all__ = ["CapacityScheduling", "ElasticQuota", "ElasticQuotaSpec"]
