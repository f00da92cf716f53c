"""CapacityScheduling: namespaces lend each other what they don't use of their quotas, and take it back."""

from kschedfw_capacity.elastic_quota import ElasticQuota, ElasticQuotaSpec
from kschedfw_capacity.plugin import CapacityScheduling

__all__ = ["CapacityScheduling", "ElasticQuota", "ElasticQuotaSpec"]
