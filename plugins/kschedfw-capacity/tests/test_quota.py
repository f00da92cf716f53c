"""Quota arithmetic: example by example, then for all amounts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kschedfw_capacity.amounts import NOTHING, STANDARD, Amounts
from kschedfw_capacity.quota import Bounds, Quota, Quotas

from kschedfw import make_pod

GPU = "nvidia.com/gpu"

amounts = st.dictionaries(st.sampled_from([*STANDARD, GPU]), st.integers(0, 20)).map(Amounts)
limits = st.dictionaries(st.sampled_from([*STANDARD, GPU]), st.integers(0, 20))
quotas = st.builds(Quota, st.builds(Bounds, amounts, limits), amounts)
clusters = st.dictionaries(st.sampled_from("abc"), quotas, min_size=1).map(Quotas)


def cpu(milli: int) -> Amounts:
    return Amounts({"cpu": milli})


def quota(least: int, most: int, used: int) -> Quota:
    return Quota(Bounds(cpu(least), {"cpu": most}), cpu(used))


class TestAmounts:
    def test_a_pod_counts_as_it_does_on_a_node(self) -> None:
        pod = make_pod().requests({"cpu": "1500m", "memory": "1Ki", GPU: 2}).overhead(cpu="1").build()
        assert Amounts.requested_by(pod) == Amounts({"cpu": 2500, "memory": 1024, GPU: 2})

    def test_nothing_of_a_resource_is_as_good_as_not_naming_it(self) -> None:
        assert Amounts({"cpu": 0}) == NOTHING
        assert cpu(1)["memory"] == 0

    @given(amounts, amounts)
    def test_what_is_added_can_be_taken_away(self, first: Amounts, second: Amounts) -> None:
        assert first + second - second == first

    @given(amounts, amounts)
    def test_the_order_of_a_sum_does_not_matter(self, first: Amounts, second: Amounts) -> None:
        assert first + second == second + first


class TestQuota:
    def test_it_borrows_once_it_uses_more_than_its_min(self) -> None:
        assert not quota(4, 6, 4).is_over_min
        assert quota(4, 6, 5).is_over_min

    def test_its_min_can_be_used_up_exactly(self) -> None:
        assert not quota(4, 6, 2).is_over_min_with(cpu(2))
        assert quota(4, 6, 2).is_over_min_with(cpu(3))

    def test_its_max_can_be_used_up_exactly(self) -> None:
        assert not quota(4, 6, 4).is_over_max_with(cpu(2))
        assert quota(4, 6, 4).is_over_max_with(cpu(3))

    def test_what_min_does_not_name_is_borrowed(self) -> None:
        assert Quota(Bounds(cpu(4)), Amounts({"memory": 1})).is_over_min
        assert Quota(Bounds(cpu(4))).is_over_min_with(Amounts({GPU: 1}))

    def test_what_max_does_not_name_is_unlimited(self) -> None:
        everything = Amounts({"cpu": 6, "memory": 1 << 62, GPU: 1 << 62})
        assert not quota(4, 6, 0).is_over_max_with(everything)

    def test_a_max_of_zero_is_a_limit(self) -> None:
        assert Quota(Bounds(max={GPU: 0})).is_over_max_with(Amounts({GPU: 1}))

    def test_extended_resources_count_only_for_whom_asks_for_them(self) -> None:
        lowered = Quota(Bounds(Amounts({"cpu": 4, GPU: 1}), {GPU: 1}), Amounts({GPU: 2}))
        assert lowered.is_over_min
        assert not lowered.is_over_min_with(cpu(1))
        assert not lowered.is_over_max_with(cpu(1))
        assert lowered.is_over_max_with(Amounts({GPU: 1}))

    def test_cpu_and_memory_count_for_all(self) -> None:
        lowered = Quota(Bounds(max={"memory": 1}), Amounts({"memory": 2}))
        assert lowered.is_over_max_with(cpu(1))

    @given(quotas, amounts, amounts)
    def test_asking_for_more_never_helps(self, quota: Quota, request: Amounts, more: Amounts) -> None:
        assert quota.is_over_max_with(request) <= quota.is_over_max_with(request + more)
        assert quota.is_over_min_with(request) <= quota.is_over_min_with(request + more)

    @given(quotas)
    def test_who_is_over_min_has_nothing_left_of_some_resource(self, quota: Quota) -> None:
        over = {name for name in quota.used.names if quota.used[name] > quota.bounds.min[name]}
        assert quota.is_over_min == bool(over)


class TestQuotas:
    def test_what_one_does_not_use_the_other_may_borrow(self) -> None:
        both = Quotas({"a": quota(4, 8, 5), "b": quota(4, 8, 1)})
        assert not both.are_over_min_with(cpu(2))
        assert both.are_over_min_with(cpu(3))

    def test_a_namespace_without_quota_counts_for_nothing(self) -> None:
        one = Quotas({"a": quota(4, 8, 4)})
        one.add("b", cpu(100))
        one.remove("c", cpu(100))
        assert not one.are_over_min_with(NOTHING)
        assert "b" not in one
        assert list(one) == ["a"]

    @given(clusters, st.sampled_from("abc"), amounts)
    def test_adding_is_undone_by_removing(self, quotas: Quotas, namespace: str, amounts: Amounts) -> None:
        before = {each: quotas[each] for each in quotas}
        quotas.add(namespace, amounts)
        quotas.remove(namespace, amounts)
        assert {each: quotas[each] for each in quotas} == before
        assert quotas.are_over_min_with(NOTHING) == Quotas(before).are_over_min_with(NOTHING)

    @given(clusters, st.sampled_from("abc"), amounts)
    def test_a_clone_keeps_its_changes_to_itself(
        self, quotas: Quotas, namespace: str, amounts: Amounts
    ) -> None:
        before = {each: quotas[each] for each in quotas}
        clone = quotas.clone()
        clone.add(namespace, amounts)
        assert {each: quotas[each] for each in quotas} == before
        if namespace in clone:
            assert clone[namespace].used == before[namespace].used + amounts

    @given(clusters, amounts)
    def test_the_sum_is_kept_in_step(self, quotas: Quotas, amounts: Amounts) -> None:
        for namespace in quotas:
            quotas.add(namespace, amounts)
        anew = Quotas({namespace: quotas[namespace] for namespace in quotas})
        assert quotas.are_over_min_with(amounts) == anew.are_over_min_with(amounts)

    @given(clusters)
    def test_if_all_together_are_over_the_sum_then_one_is_over_its_own_min(self, quotas: Quotas) -> None:
        if quotas.are_over_min_with(NOTHING):
            assert any(quotas[namespace].is_over_min for namespace in quotas)
