"""The codes of refusals and the table of their traits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from domain.refusals import TRAITS, About, Refusal, RefusalCode, codes_where, traits_of
from domain.settings import Settings

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("code", list(RefusalCode))
def test_a_code_is_its_name_in_small_letters_fit_for_a_label(code: RefusalCode) -> None:
    assert code.value == code.name.lower()
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code.value)


def test_equal_refusals_count_as_one() -> None:
    refusal = Refusal(RefusalCode.TOO_SLOW, "needs 20.0 h, allowed are 10.0 h")

    assert len({refusal, Refusal(RefusalCode.TOO_SLOW, "needs 20.0 h, allowed are 10.0 h")}) == 1
    assert refusal != Refusal(RefusalCode.TOO_SLOW, "needs 21.0 h, allowed are 10.0 h")


def test_every_code_has_traits_in_its_order() -> None:
    assert list(TRAITS) == list(RefusalCode)


@pytest.mark.parametrize("code", list(RefusalCode))
def test_wording_is_whole_sentences(code: RefusalCode) -> None:
    """Volunteers read the meaning in a client's message, and both sentences on the web pages."""
    traits = code.traits
    for text in (traits.meaning, traits.remedy, *filter(None, [traits.advice])):
        assert re.fullmatch(r"[A-Z].*[^ .]\.", text)


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        (RefusalCode.IN_PROGRESS_LIMIT, {"scheduler.in_progress_per_cpu", "scheduler.in_progress_per_gpu"}),
        (RefusalCode.NEWCOMER_SHARE, {"scheduler.newcomer_fraction"}),
        (RefusalCode.LEASED, {"ordering.reservation_age_s", "ordering.reservation_slots"}),
        (RefusalCode.DISPLACES, {"ordering.displace_factor", "ordering.displace"}),
    ],
)
def test_advice_names_the_settings_of_a_limit(code: RefusalCode, settings: set[str]) -> None:
    assert set(re.findall(r"`([a-z]+\.[a-z_]+)`", code.traits.advice)) == settings <= set(Settings().as_mapping())


def test_meaning_is_unique() -> None:
    assert len({traits.meaning for traits in TRAITS.values()}) == len(TRAITS)
    assert len({traits.of_hosts for traits in TRAITS.values()}) == len(TRAITS)


@pytest.mark.parametrize("code", list(RefusalCode))
def test_wording_for_hosts_continues_a_count(code: RefusalCode) -> None:
    """As in "12 hosts have too little memory"."""
    assert re.fullmatch(r"[a-z].*[^ .]", code.traits.of_hosts)


@pytest.mark.parametrize("code", list(RefusalCode))
def test_wording_for_one_host_has_a_singular_verb(code: RefusalCode) -> None:
    verb = code.traits.of(1).split()[0]

    assert verb in {"is", "has", "does", "cannot", "found", "lost", "reached"} or verb.endswith("s")
    assert code.traits.of(2) == code.traits.of_hosts
    assert " their " not in code.traits.of(1)


def test_traits_agree() -> None:
    platform = codes_where(lambda traits: traits.wrong_platform)
    assert platform <= codes_where(lambda traits: traits.about is About.HOST)
    assert codes_where(lambda traits: traits.by_gate_or_share) < codes_where(lambda traits: traits.fits)
    assert not codes_where(lambda traits: traits.fits) & platform


def test_stored_code_of_another_version_has_no_traits() -> None:
    assert traits_of("memory") is TRAITS[RefusalCode.MEMORY]
    assert traits_of("of another version") is None


def test_every_code_is_raised() -> None:
    sources = "".join(path.read_text() for room in ("scheduler", "feeder") for path in (ROOT / room).rglob("*.py"))
    raised = set(re.findall(r"RefusalCode\.([A-Z_]+)", sources))
    assert raised == {code.name for code in RefusalCode}
