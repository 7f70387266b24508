"""Settings: accepted values, refused values and the messages for them."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from enum import StrEnum
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.bounds import written
from domain.errors import InvalidInputError
from domain.settings import DeadlineRule, Settings, meaning_of
from priority.logical_time import LetRule
from priority.policies import POLICIES
from tests.facts import missing
from wire.attach import scheduler_link

DEFAULTS = Settings().as_mapping()
KEYS = sorted(DEFAULTS)

# Names without a unit: counts, percentiles, factors, texts and switches.
WITHOUT_UNIT = re.compile(
    r"(p_[a-z]+|.*_(factor|z|length|infinite|rows|samples|jobs|instances|new_hosts|rotate|per_request|per_cpu|per_gpu|per_instance"
    r"|quota|quota_start|values|depth)"
    r"|slots|connections|processes|trusted_proxies|[a-z]+_networks|app_errors|[a-z]+_burst|name|url|read_url|redirect|down|account_creation|rule|policy|let_rule|soft_limits|accrual|afap"
    r"|.*_(weight|weights|slots|xfactor|streams)|fairshare|targets|components|queues|queue_hosts|size_favours|equal_among|displace|server|port|tls|user|sender)"
)
WITH_UNIT = re.compile(r".*_(s|bytes|flop|flop_per_s|fraction)")


TEXTS: dict[str, st.SearchStrategy[object]] = {
    "mail.server": st.sampled_from(["", "smtp.example.org", "::1"]),
    "mail.tls": st.sampled_from(["starttls", "tls", "none"]),
    "mail.sender": st.sampled_from(["", "project@example.org"]),
    "project.url": st.from_regex(r"\Ahttps?://[a-z0-9.:/-]{1,180}/\Z"),
    "ordering.policy": st.sampled_from(["logical_time", "multifactor", "components", "equal_access", "fifo"]),
    "ordering.let_rule": st.sampled_from(["design", "wfq"]),
    "ordering.soft_limits": st.sampled_from(["last", "penalty"]),
    "ordering.accrual": st.sampled_from(["eligible", "always"]),
    "ordering.fairshare": st.sampled_from(["ratio", "rank"]),
    "ordering.size_favours": st.sampled_from(["large", "small"]),
    "ordering.equal_among": st.sampled_from(["submitters", "accounts"]),
    "ordering.usage_weights": st.sampled_from(["", "flop=1", "cpu_s=1 gpu_s=1e12"]),
    "ordering.targets": st.sampled_from(["", "user:DEFAULT=20", "group:stuart=38.5+ level:standby=5-"]),
    "ordering.components": st.sampled_from(["", "XFACTORWEIGHT=-1.5 XFACTORCAP=50", "expedite.FSWEIGHT=10"]),
    "ordering.queues": st.sampled_from(["", "express=0/1/3", "a=0/1/3 b-2=1/0.5/1e3"]),
    "ordering.queue_hosts": st.sampled_from(
        ["", "big:ncpus>=8,ram_bytes<=3.5e9", "a:label=x|y,gpu!=NVIDIA b-2:gpus>=1"]
    ),
    **dict.fromkeys(
        ("storage.url", "storage.read_url"),
        st.sampled_from(["", "s3://bucket/a/b", "s3://bucket?region=eu-1&endpoint=https://s3.example.org:9000"]),
    ),
    **dict.fromkeys(
        ("server.trusted_proxies", "server.metrics_networks", "notifications.private_networks"),
        st.sampled_from(["", "10.0.0.1", "127.0.0.0/8, ::1", "2001:db8::/32,192.0.2.0/24"]),
    ),
}


def kind_of(key: str) -> type:
    section, _, name = key.partition(".")
    kind = get_type_hints(type(getattr(Settings(), section)))[name]
    found = getattr(kind, "__supertype__", kind)
    assert isinstance(found, type)
    return found


def range_of(key: str) -> tuple[float | None, float | None]:
    section, _, name = key.partition(".")
    [metadata] = [f.metadata for f in fields(getattr(Settings(), section)) if f.name == name]
    return metadata["low"], metadata["high"]


NUMBERS = [key for key in KEYS if kind_of(key) in (int, float)]
NO_NUMBERS = (math.nan, math.inf, -math.inf, True, False, "7", 10**400, -(10**400))
WITH_LOW = [key for key in NUMBERS if range_of(key)[0] is not None]
WITH_HIGH = [key for key in NUMBERS if range_of(key)[1] is not None]


def refusal_of(key: str, value: object) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        Settings().changed(key, value)
    return caught.value


def test_nothing_changed_is_the_default() -> None:
    assert Settings.from_mapping({}) == Settings()


def test_every_setting_round_trips_through_a_mapping() -> None:
    assert Settings.from_mapping(DEFAULTS) == Settings()


@pytest.mark.parametrize("key", KEYS)
def test_a_default_lies_in_its_own_range(key: str) -> None:
    assert Settings().changed(key, DEFAULTS[key]) == Settings()


def values_of(key: str) -> st.SearchStrategy[object]:
    kind, (low, high) = kind_of(key), range_of(key)
    if kind is bool:
        return st.booleans()
    if issubclass(kind, StrEnum):
        return st.sampled_from(list(kind))
    if kind is str:
        return TEXTS.get(key, st.text(max_size=20))
    if kind is int:
        return st.integers(int(low or 0), int(high or 10**9))
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


@given(st.data())
def test_what_was_set_is_read_back_and_nothing_else_changes(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(KEYS))
    value = data.draw(values_of(key))

    changed = Settings().changed(key, value)

    assert changed.as_mapping() == {**DEFAULTS, key: value}
    assert type(changed.as_mapping()[key]) is type(DEFAULTS[key])
    assert Settings.from_mapping(changed.as_mapping()) == changed


@pytest.mark.parametrize("key", KEYS)
def test_every_setting_says_what_it_means(key: str) -> None:
    assert len(meaning_of(key).split()) >= 2
    assert meaning_of(key)[-1] != "."


@pytest.mark.parametrize("key", KEYS)
def test_a_name_tells_its_unit_or_needs_none(key: str) -> None:
    name = key.partition(".")[2]

    assert WITH_UNIT.fullmatch(name) or WITHOUT_UNIT.fullmatch(name)


@pytest.mark.parametrize("key", KEYS)
def test_a_fraction_has_a_range_that_ends(key: str) -> None:
    if key.endswith("_fraction") or re.search(r"\.p_[a-z]+$", key):
        low, high = range_of(key)
        assert low == 0
        assert high is not None


@pytest.mark.parametrize("key", NUMBERS)
def test_every_number_has_a_least_value(key: str) -> None:
    assert range_of(key)[0] is not None


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".",
        "deadline",
        "deadline.",
        ".p_tight",
        "deadline.p_tight.x",
        "Deadline.p_tight",
        "deadline.knob",
        "x.slots",
    ],
)
def test_an_unknown_key_is_named(key: str) -> None:
    error = refusal_of(key, 1)

    assert (error.field, error.got) == (key, key)
    assert str(error).startswith(f"{key}: ") and not missing(str(error), "name of a setting", "`muster setting list`")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", [None, [], {}, b"1"], ids=["none", "list", "mapping", "bytes"])
def test_wrong_type_is_refused_with_key_and_value(key: str, value: object) -> None:
    error = refusal_of(key, value)

    got = "no value" if value is None else repr(value)
    assert str(error) == f"{key}: expected {error.expected}, got {got}"
    assert error.expected


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:9])
def test_a_number_is_finite_and_no_switch_or_text(key: str, value: object) -> None:
    error = refusal_of(key, value)

    assert error.field == key
    assert error.expected.startswith(("a number", "a whole number"))


@pytest.mark.parametrize("key", [key for key in KEYS if kind_of(key) is int])
def test_a_whole_number_has_no_fraction(key: str) -> None:
    low = range_of(key)[0]
    assert low is not None

    assert refusal_of(key, low + 1.5).expected.startswith("a whole number")
    assert Settings().changed(key, low + 1.0).as_mapping()[key] == int(low + 1)


@pytest.mark.parametrize("key", WITH_LOW)
def test_the_least_value_is_allowed_and_less_is_not(key: str) -> None:
    low = range_of(key)[0]
    assert low is not None

    assert Settings().changed(key, low).as_mapping()[key] == low
    error = refusal_of(key, low - 1)
    assert written(low) in error.expected
    assert str(error).endswith(f"got {low - 1!r}")


def test_every_number_has_a_range() -> None:
    assert NUMBERS == WITH_LOW == WITH_HIGH


@pytest.mark.parametrize("key", WITH_HIGH)
def test_the_greatest_value_is_allowed_and_more_is_not(key: str) -> None:
    high = range_of(key)[1]
    assert high is not None

    assert Settings().changed(key, high).as_mapping()[key] == high
    assert f"to {written(high)}" in refusal_of(key, high + 1).expected


def test_a_switch_takes_no_number() -> None:
    assert not missing(str(refusal_of("project.down", 1)), "project.down:", "true or false", "got 1")


def test_a_text_takes_no_number() -> None:
    assert str(refusal_of("project.name", 7)) == "project.name: expected text, got 7"


@pytest.mark.parametrize(
    "value", ["", "http://muster.example", "ftp://muster.example/", "/", "http:///x y/", "http://" + "x" * 200 + "/"]
)
def test_a_master_url_ends_in_a_slash_and_fits_a_clients_line(value: str) -> None:
    message = str(refusal_of("project.url", value))
    assert not missing(message, "project.url:", "http or https", "at most 189 characters", "ends in /")


def test_the_longest_master_url_still_names_the_scheduler() -> None:
    url = "https://" + "x" * 180 + "/"

    assert Settings().changed("project.url", url).project.url == url
    assert scheduler_link(f"{url}scheduler").count(url) == 2


@pytest.mark.parametrize(
    ("key", "expected"),
    [("ordering.policy", "one of " + ", ".join(POLICIES)), ("ordering.let_rule", "one of design, wfq")],
)
@pytest.mark.parametrize("value", ["", "luck", "FIFO", "fifo\n", "wfq "])
def test_unknown_ordering_policy_is_refused(key: str, expected: str, value: str) -> None:
    assert str(refusal_of(key, value)) == f"{key}: expected {expected}, got {value!r}"


def test_the_orderings_taken_are_those_there_are() -> None:
    for policy in POLICIES:
        assert Settings().changed("ordering.policy", policy).ordering.policy == policy
    for rule in LetRule:
        assert Settings().changed("ordering.let_rule", str(rule)).ordering.let_rule == rule


@pytest.mark.parametrize("value", ["MUSTER", "", "best", 0, True])
def test_a_closed_set_names_its_members(value: object) -> None:
    error = refusal_of("deadline.rule", value)
    assert (error.field, error.expected, error.got) == ("deadline.rule", f"one of {', '.join(DeadlineRule)}", value)


@pytest.mark.parametrize("rule", list(DeadlineRule))
def test_a_member_of_a_closed_set_is_taken_as_text(rule: DeadlineRule) -> None:
    assert Settings().changed("deadline.rule", str(rule)).deadline.rule is rule


def test_a_whole_number_serves_where_a_number_is_wanted() -> None:
    changed = Settings().changed("deadline.min_slack_s", 60).deadline.min_slack_s

    assert (changed, type(changed)) == (60.0, float)


def test_the_first_wrong_value_of_many_is_the_one_named() -> None:
    with pytest.raises(InvalidInputError, match=r"^deadline\.p_afap: "):
        Settings.from_mapping({"scheduler.daily_quota": 0, "deadline.p_afap": 7, "feeder.slots": 100})


def test_changing_leaves_the_original_alone() -> None:
    settings = Settings()

    settings.changed("feeder.slots", 20)

    assert settings == Settings()
