"""Encodes the statistics export that statistics sites read. Pure. docs/protocol.md#statistics.

The records are those of BOINC's db_dump. Text is ASCII: other characters are numeric references.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.credit import Credit
from domain.participation import ExportedHost, ExportedTeam, ExportedVolunteer, ExportTotals, WithdrawnRecord
from domain.units import Instant
from wire.text import escape

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def tables(totals: ExportTotals, apps: Sequence[str], now: Instant) -> bytes:
    """Encode tables.xml: the time of the export, counts over all owners of credit, and the names of the apps."""
    counts = (
        ("nusers_total", totals.volunteers),
        ("nteams_total", totals.teams),
        ("nhosts_total", totals.hosts),
        ("nusers_deleted_total", totals.volunteers_deleted),
        ("nhosts_deleted_total", totals.hosts_deleted),
    )
    lines = [
        f"{DECLARATION}<tables>\n    <update_time>{int(now)}</update_time>\n",
        *[f"    <{tag}>{count}</{tag}>\n" for tag, count in counts],
        f"    <total_credit>{totals.credit:.6f}</total_credit>\n    <applications>\n",
        *[f"        <application>\n            <name>{escape(name)}</name>\n        </application>\n" for name in apps],
        "    </applications>\n</tables>\n",
    ]
    return encoded("".join(lines))


def encoded(text: str) -> bytes:
    """Encode text as ASCII.

    >>> encoded("Zoë")
    b'Zo&#235;'
    """
    return text.encode("ascii", "xmlcharrefreplace")


def volunteer(one: ExportedVolunteer, now: Instant) -> str:
    """Render a `<user>`."""
    team = "" if one.team_id is None else f" <teamid>{one.team_id}</teamid>\n"
    return (
        f"<user>\n <id>{one.volunteer_id}</id>\n <name>{escape(one.name)}</name>\n"
        f" <create_time>{int(one.created_at)}</create_time>\n{_credit(one.credit, now)}"
        f" <cpid>{one.cpid}</cpid>\n{team}</user>\n"
    )


def team(one: ExportedTeam, now: Instant) -> str:
    """Render a `<team>`."""
    founder = "" if one.founder_name is None else f" <founder_name>{escape(one.founder_name)}</founder_name>\n"
    url = f" <url>{escape(one.url)}</url>\n" if one.url else ""
    about = f" <description>{escape(one.description)}</description>\n" if one.description else ""
    return (
        f"<team>\n <id>{one.team_id}</id>\n <type>0</type>\n <name>{escape(one.name)}</name>\n"
        f" <userid>{one.founder_id or 0}</userid>\n{_credit(one.credit, now)}{founder}"
        f" <create_time>{int(one.created_at)}</create_time>\n{url}{about} <country>None</country>\n</team>\n"
    )


def host(one: ExportedHost, now: Instant) -> str:
    """Render a `<host>`; its name and addresses are not public."""
    said, version = one.host, one.host.client_version
    gpus = "".join([f"[{escape(gpu.type)}|{gpu.count}]" for gpu in said.coprocessors])
    coprocs = f" <coprocs>{gpus}</coprocs>\n" if gpus else ""
    return (
        f"<host>\n <id>{said.host_id}</id>\n <userid>{said.volunteer_id}</userid>\n{_credit(one.credit, now)}"
        f" <p_vendor>{escape(said.cpu_vendor)}</p_vendor>\n <p_model>{escape(said.cpu_model)}</p_model>\n"
        f" <os_name>{escape(said.os_name)}</os_name>\n <os_version>{escape(said.os_version)}</os_version>\n"
        f" <boinc_version>{version // 10000}.{version // 100 % 100}.{version % 100}</boinc_version>\n{coprocs}"
        f" <create_time>{int(said.created_at)}</create_time>\n <rpc_time>{int(said.last_rpc_at)}</rpc_time>\n"
        f" <ncpus>{said.ncpus}</ncpus>\n <p_fpops>{said.flop_per_s:.6f}</p_fpops>\n"
        f" <m_nbytes>{said.ram_bytes:.6f}</m_nbytes>\n <d_free>{said.disk_free_bytes:.6f}</d_free>\n"
        f" <host_cpid>{one.cpid}</host_cpid>\n</host>\n"
    )


def gone_volunteer(one: WithdrawnRecord, _now: Instant) -> str:
    """Render a deleted `<user>`."""
    return f"<user>\n <id>{one.id}</id>\n <cpid>{one.cpid}</cpid>\n</user>\n"


def gone_host(one: WithdrawnRecord, _now: Instant) -> str:
    """Render a deleted `<host>`."""
    return f"<host>\n <id>{one.id}</id>\n <host_cpid>{one.cpid}</host_cpid>\n</host>\n"


def _credit(credit: Credit, now: Instant) -> str:
    return (
        f" <total_credit>{credit.total:.6f}</total_credit>\n"
        f" <expavg_credit>{credit.average_at(now):.6f}</expavg_credit>\n <expavg_time>{int(now)}</expavg_time>\n"
    )
