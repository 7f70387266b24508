"""Encodes the replies of the web RPCs that account managers, clients and statistics sites call. Pure.

docs/protocol.md#web-rpcs. All replies, including errors (wire/attach.py), have HTTP status 200.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import format_datetime
from urllib.parse import quote_plus

from domain.credit import Credit
from domain.participation import ExportedVolunteer, News, ProjectFigures, Team
from domain.units import Instant, utc
from domain.volunteers import OwnHost, Volunteer
from wire import statistics
from wire.encode import render_preferences
from wire.messages import ProjectPreferences
from wire.text import escape

DECLARATION = '<?xml version="1.0" encoding="UTF-8" ?>\n'


@dataclass(frozen=True, slots=True)
class AppStatus:
    """The state of an app's instances, for the status page."""

    app_id: int
    name: str
    unsent: int
    in_progress: int


def account_info(volunteer: Volunteer, team: Team | None, preferences: ProjectPreferences, *, exported: bool) -> bytes:
    """Encode the reply to am_get_info.php. Texts are URL-encoded, as in the original."""
    founder = "<teamfounder/>\n" if team is not None and team.founder_id == volunteer.volunteer_id else ""
    return _document(
        f"<am_get_info_reply>\n<success/>\n<id>{volunteer.volunteer_id}</id>\n"
        f"<name>{quote_plus(volunteer.name)}</name>\n"
        "<country></country>\n<postal_code></postal_code>\n<global_prefs>\n</global_prefs>\n"
        f"<project_prefs>\n{render_preferences(preferences)}</project_prefs>\n<url></url>\n<send_email>0</send_email>\n"
        f"<show_hosts>{exported:d}</show_hosts>\n<teamid>{0 if team is None else team.team_id}</teamid>\n"
        f"<venue></venue>\n{founder}</am_get_info_reply>\n"
    )


def account_changed() -> bytes:
    """Encode the reply to a successful am_set_info.php."""
    return _document("<am_set_info_reply>\n<success/>\n</am_set_info_reply>\n")


def one_team(team: Team, now: Instant) -> bytes:
    return _document(statistics.team(team.exported_form, now))


def teams(found: Iterable[Team], now: Instant) -> bytes:
    """Encode the reply to team_lookup.php by name."""
    return _document(f"<teams>\n{''.join([statistics.team(one.exported_form, now) for one in found])}</teams>\n")


def user(one: ExportedVolunteer, now: Instant, hosts: Sequence[OwnHost] | None = None) -> bytes:
    """Encode the reply to show_user.php. `hosts` is given only to the owner."""
    inside = "" if hosts is None else "".join([_host(own, now) for own in hosts])
    return _document(statistics.volunteer(one, now).replace("</user>\n", f"{inside}</user>\n"))


def _host(own: OwnHost, now: Instant) -> str:
    credit: Credit = own.credit
    return (
        f"<host>\n <id>{own.host.host_id}</id>\n <domain_name>{escape(own.host.domain_name)}</domain_name>\n"
        f" <total_credit>{credit.total:.6f}</total_credit>\n"
        f" <expavg_credit>{credit.average_at(now):.6f}</expavg_credit>\n"
        f" <p_model>{escape(own.host.cpu_model)}</p_model>\n <os_name>{escape(own.host.os_name)}</os_name>\n</host>\n"
    )


def status(figures: ProjectFigures, daemons: Sequence[tuple[str, str, bool]], apps: Sequence[AppStatus]) -> bytes:
    """Encode the reply to server_status.php?xml=1. `daemons` are node, process and whether the process runs."""
    lines = [
        f"<daemon>\n<host>{escape(node)}</host>\n<command>{escape(name)}</command>\n"
        f"<status>{'running' if runs else 'not running'}</status>\n</daemon>\n"
        for node, name, runs in daemons
    ]
    counts: Mapping[str, float] = {
        "results_ready_to_send": sum(app.unsent for app in apps),
        "results_in_progress": sum(app.in_progress for app in apps),
        "workunits_waiting_for_validation": figures.jobs_to_validate,
        "workunits_waiting_for_assimilation": 0,
        "workunits_waiting_for_deletion": 0,
        "results_waiting_for_deletion": 0,
        "transitioner_backlog_hours": 0,
        "users_with_recent_credit": figures.volunteers_with_recent_credit,
        "users_with_credit": figures.volunteers_with_credit,
        "users_registered_in_past_24_hours": figures.volunteers_today,
        "hosts_with_recent_credit": figures.hosts_with_recent_credit,
        "hosts_with_credit": figures.hosts_with_credit,
        "hosts_registered_in_past_24_hours": figures.hosts_today,
        "current_floating_point_speed": round(figures.gigaflops, 6),
    }
    tasks = [
        f"<app>\n<id>{app.app_id}</id>\n<name>{escape(app.name)}</name>\n<unsent>{app.unsent}</unsent>\n"
        f"<in_progress>{app.in_progress}</in_progress>\n</app>\n"
        for app in apps
    ]
    return _document(
        f"<server_status>\n<daemon_status>\n{''.join(lines)}</daemon_status>\n<database_file_states>\n"
        f"{''.join([f'<{tag}>{count}</{tag}>' + chr(10) for tag, count in counts.items()])}"
        f"<tasks_by_app>\n{''.join(tasks)}</tasks_by_app>\n</database_file_states>\n</server_status>\n"
    )


def notices(project: str, url: str, news: Sequence[News], now: Instant) -> bytes:
    """Encode the news as an RSS feed, newest first."""
    items = [
        f"<item>\n<title>{escape(one.title)}</title>\n"
        f'<guid isPermaLink="false">{escape(url)}news/{one.news_id}</guid>\n'
        f"<link>{escape(url)}</link>\n<description>{escape(one.body)}</description>\n"
        f"<pubDate>{_rfc(one.posted_at)}</pubDate>\n</item>\n"
        for one in news
    ]
    return _document(
        f'<rss version="2.0">\n<channel>\n<title>{escape(project)}</title>\n<link>{escape(url)}</link>\n'
        f"<description>News of the project</description>\n<lastBuildDate>{_rfc(now)}</lastBuildDate>\n"
        f"{''.join(items)}</channel>\n</rss>\n"
    )


def _rfc(at: Instant) -> str:
    return format_datetime(utc(at), usegmt=True)


def _document(content: str) -> bytes:
    return (DECLARATION + content).encode("utf-8", "replace")
