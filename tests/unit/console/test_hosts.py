"""Parameters and paging of the host lists."""

from __future__ import annotations

import pytest

from administration.hosts import choice_of
from console.hosts import STATES, asked_of, version_of
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.host_lists import HostKind, SlowWith
from domain.jobs import InstanceState
from domain.units import DAY_S, AppVersionId, Seconds, later
from tests.builders import NOW, an_app, an_app_version


def test_links_to_other_pages_keep_what_was_asked() -> None:
    for query, kept in (
        ({}, {}),
        ({"show": "all", "q": " a@b "}, {"q": "a@b"}),
        ({"show": "failing"}, {"show": "failing"}),
        ({"show": "silent"}, {"show": "silent", "days": "7"}),
        ({"show": "without_work"}, {"show": "without_work", "days": "1"}),
        ({"show": "without_work", "sort": "-failed"}, {"show": "without_work", "days": "1", "sort": "-failed"}),
        ({"sort": "-cpus", "label": "lab"}, {"sort": "-cpus", "label": "lab"}),
        ({"show": "silent", "days": "0.5"}, {"show": "silent", "days": "0.5"}),
    ):
        asked = asked_of(query)
        assert asked.kept == kept
        assert asked_of(asked.kept) == asked


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"show": "old"}, "show"),
        ({"sort": "size"}, "sort"),
        ({"show": "slow", "q": "a@b"}, "q"),
        ({"days": "3"}, "days"),
        ({"show": "silent", "days": "-1"}, "days"),
        ({"show": "silent", "days": "nan"}, "days"),
        ({"after": "1~2"}, "after"),
        ({"after": "0~0.0~0"}, "after"),
        ({"after": "1~inf~0"}, "after"),
        ({"after": "1~0.0~-1"}, "after"),
    ],
)
def test_host_list_rejects_unknown_parameters(query: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{field}: expected"):
        asked_of(query)


def test_failing_hosts_cover_a_week_and_silent_ones_days() -> None:
    assert choice_of(HostKind.FAILING, now=NOW).since == later(NOW, -7 * DAY_S)
    assert choice_of(HostKind.SILENT, now=NOW).since == later(NOW, -7 * DAY_S)
    assert choice_of(HostKind.SILENT, now=NOW, within_s=Seconds(60.0)).since == later(NOW, -60.0)
    assert choice_of(HostKind.WITHOUT_WORK, now=NOW).since == later(NOW, -DAY_S)
    assert choice_of(HostKind.SLOW, now=NOW).since == 0.0


def test_a_host_was_never_sent_what_is_unsent() -> None:
    assert set(STATES) == {"all", *InstanceState} - {InstanceState.UNSENT, InstanceState.CANCELLED}


def test_the_version_a_host_is_slow_with_is_called_by_its_app() -> None:
    app, version = an_app(), an_app_version()
    catalogue = Catalogue(apps={app.app_id: app}, versions={version.app_version_id: version})

    found = version_of(SlowWith(version.app_version_id, 0.01, None), catalogue)

    assert found == (app.name, f"{version.version_num / 100:.2f} {version.platform}")
    assert version_of(SlowWith(AppVersionId(99), 0.01, None), catalogue) == ("", "version 99")
