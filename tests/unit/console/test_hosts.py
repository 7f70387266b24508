"""Parameters and paging of the host lists."""

from __future__ import annotations

from dataclasses import replace

import pytest

from administration.hosts import choice_of
from console.hosts import FULL, STATES, OrderRow, asked_of, havs_of, rows_of, version_of
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.host_lists import HostKind, SlowWith
from domain.hosts import DecayedSums, HostAppVersion
from domain.jobs import InstanceState
from domain.units import DAY_S, AppId, AppVersionId, HostId, Seconds, later
from tests.builders import NOW, an_app, an_app_version
from tests.facts import missing


def test_links_to_other_pages_keep_what_was_asked() -> None:
    for query, kept in (
        ({}, {}),
        ({"show": "all", "q": " a@b "}, {"q": "a@b"}),
        ({"show": "failing"}, {"show": "failing"}),
        ({"show": "silent"}, {"show": "silent", "days": "7"}),
        ({"show": "without_work"}, {"show": "without_work", "days": "1"}),
        ({"show": "without_work", "sort": "-failed"}, {"show": "without_work", "days": "1", "sort": "-failed"}),
        ({"sort": "-cpus", "label": "lab"}, {"sort": "-cpus", "label": "lab"}),
        ({"show": "without_work", "q": "ada"}, {"show": "without_work", "days": "1", "q": "ada"}),
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


def test_a_link_to_another_list_keeps_search_and_order() -> None:
    asked = asked_of({"show": "without_work", "q": "ada", "sort": "-valid", "days": "3"})

    assert asked.tab("silent") == "?show=silent&q=ada&sort=-valid"
    assert asked.tab("all") == "?q=ada&sort=-valid"
    assert asked.tab("failing") == "?show=failing"


@pytest.mark.parametrize("kind", [HostKind.SLOW, HostKind.FAILING, HostKind.RESTRICTED])
def test_lists_with_their_own_order_have_no_search(kind: HostKind) -> None:
    with pytest.raises(InvalidInputError, match=r"^q: expected"):
        choice_of(kind, now=NOW, text="ada")


def test_silent_hosts_cover_days() -> None:
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


def test_inherited_statistics_name_their_version() -> None:
    old, new = an_app_version(), an_app_version(app_version_id=AppVersionId(2), version_num=110)
    catalogue = Catalogue(apps={AppId(1): an_app()}, versions={one.app_version_id: one for one in (old, new)})
    first = HostAppVersion(HostId(7), AppVersionId(1))
    known = DecayedSums(3.0, 0.0, 0.0, NOW)
    second = HostAppVersion(HostId(7), AppVersionId(2), relaxed=known, inherited_from=AppVersionId(1))

    found = {row.version: row.inherited for row in havs_of([first, second], catalogue, NOW)}
    failed = havs_of([first, replace(second, relaxed=DecayedSums())], catalogue, NOW)

    assert found == {new.title: "1.00", old.title: ""}
    assert [row.inherited for row in failed] == ["", ""]  # nothing to start with


def test_rows_of_a_dry_run_have_groups_and_batches_left_out() -> None:
    plain = {"name": "one", "app": "pi", "job_class_id": 3, "urgent": False, "stages": ["all"], "given": 0}
    busy = {"code": "not_yet", "why": "2 h > 1 h", "help": "less"}
    queue = {"code": "queue", "why": "no label", "help": "advice"}
    shown = {
        "groups": [
            {**plain, "batch_id": 5, "refusals": []},
            {**plain, "batch_id": 1, "given": 1, "urgent": True, "refusals": [{**busy, "help": ""}]},
            {**plain, "batch_id": 2, "refusals": [busy, queue]},
            {**plain, "batch_id": 3, "name": "", "refusals": []},
        ],
        "would_get": [{}],
        "conditions": [{"by_label": True}],
        "left_out": [{"batch_id": 4, "name": "late", "unsent": 9, "why": "Blocked."}],
    }

    before, given, refused, spare, left = rows_of(shown)

    assert not missing(given.result, "1") and given.marks and len(given.whys) == 1
    assert (refused.whys, refused.helps) == (["2 h > 1 h", "no label"], ["less"])
    assert refused.to_queue and refused.by_label and not given.by_label
    assert (spare.title, spare.whys, before.whys) == ("batch #3", [FULL], [FULL])
    assert left == OrderRow(4, "late #4", left.result, ["Blocked."])
    *others, stuck, last = rows_of(shown, {5, 2})  # no host can run these, and one has other refusals
    assert [one.batch_id for one in others] == [1, 3, 4]
    assert (stuck.batch_id, stuck.whys, last.batch_id, last.whys) == (5, [], 2, refused.whys)
    assert stuck.result == last.result not in (before.result, refused.result, left.result)
    nothing = {**shown, "would_get": [], "groups": [{**plain, "batch_id": 3, "refusals": []}]}
    assert rows_of(nothing)[0].whys == []
    assert len({given.result, refused.result, spare.result, left.result}) == 4
