"""A suggested value, applied, lets exactly the promised number of the evaluated hosts pass the check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from administration.explain.verdict import Suggestion, class_conditions, suggestion_of
from domain.due_terms import DueRow
from domain.hosts import Host
from domain.ranking import Gate, Percentile
from domain.refusals import Refusal
from scheduler.deadline import Due
from scheduler.deadline.inputs import too_slow
from scheduler.deadline.table import behind_gate
from scheduler.feasibility import fits_cpus, fits_disk, fits_memory
from tests.builders import NOW, a_host, a_job_class
from tests.unit.scheduler.arrays import an_asking

Check = Callable[[float], Refusal | None]  # a host's check, for a value of the job or the setting

sizes = st.floats(1.0, 1e15)
hosts = st.lists(
    st.builds(
        lambda ram, disk, cpus: a_host(ram_bytes=ram, disk_free_bytes=disk, ncpus=cpus),
        sizes,
        st.floats(-1e12, 1e15),
        st.integers(1, 4096),
    ),
    min_size=1,
    max_size=30,
)
FITS = {"memory_bytes": fits_memory, "disk_bytes": fits_disk, "ncpus": fits_cpus}


def refusal(key: str, host: Host, asked: float) -> Refusal | None:
    demand: dict[str, Any] = {key: asked}
    return FITS[key](a_job_class(**demand), an_asking(host=host), host.disk_free_bytes)


def keeps_its_promise(checks: Sequence[Check], asked: float) -> Suggestion | None:
    """Apply each option of the suggestion to the hosts that are refused now, and count those that pass."""
    refused = [(one, why) for one in checks if (why := one(asked)) is not None]
    found = suggestion_of([[why] for _, why in refused])
    if found is not None:
        assert found.asked == asked and found.options
        for option in found.options:
            assert sum(one(option.value) is None for one, _ in refused) == option.passes > 0
            assert (option.value < asked) == (found.options[0].value < asked)
    return found


@given(hosts, st.sampled_from(sorted(FITS)), sizes)
def test_lower_demand_lets_the_promised_hosts_pass(found: list[Host], key: str, asked: float) -> None:
    def check(host: Host) -> Check:
        return lambda value: refusal(key, host, value)

    checks = [check(host) for host in found]
    suggestion = keeps_its_promise(checks, asked)

    refused = [one for one in checks if one(asked) is not None]
    assert suggestion is not None or not refused or key == "disk_bytes"


@given(st.lists(st.tuples(st.floats(0.0, 1e7), st.floats(1.0, 1e7)), min_size=1, max_size=30), st.floats(1.0, 1e7))
def test_longer_bound_lets_the_promised_hosts_pass(times: list[tuple[float, float]], bound_s: float) -> None:
    def check(before_s: float, own_s: float) -> Check:
        return lambda bound_s: (
            too_slow("queued work", before_s, "runtime", own_s, bound_s) if before_s + own_s > bound_s else None
        )

    checks = [check(*one) for one in times]

    assert keeps_its_promise(checks, bound_s) or all(one(bound_s) is None for one in checks)


@given(st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), min_size=1, max_size=30), st.floats(0.0, 1.0))
def test_lower_gate_lets_the_promised_hosts_pass(ps: list[float | None], threshold: float) -> None:
    """Hosts without a percentile pass at no value."""

    def check(p: float | None) -> Check:
        def one(threshold: float) -> Refusal | None:
            found = behind_gate(a_due(threshold), Percentile(p, reason="drawn"))
            return found if isinstance(found, Refusal) else None

        return one

    keeps_its_promise([check(p) for p in ps], threshold)


def a_due(threshold: float) -> Due:
    return Due(NOW, True, Gate.TIGHT, threshold, DueRow.TABLE_5, (0.0, 0.0, threshold, 0.0))


@given(hosts, st.sampled_from(sorted(FITS)), st.lists(sizes, min_size=1, max_size=20))
def test_larger_host_passes_the_promised_classes(found: list[Host], key: str, asked: list[float]) -> None:
    host = found[0]
    refused = {place: why for place, one in enumerate(asked) if (why := refusal(key, host, one)) is not None}
    if not refused:
        return

    [condition] = class_conditions([[why] for why in refused.values()])

    assert condition.groups == len(refused) and condition.suggestion is not None
    of_host = {"memory_bytes": "ram_bytes", "disk_bytes": "disk_free_bytes", "ncpus": "ncpus"}[key]
    for option in condition.suggestion.options:
        value: dict[str, Any] = {of_host: option.value}
        larger = replace(host, **value)
        assert sum(refusal(key, larger, asked[place]) is None for place in refused) == option.passes > 0
