"""Volunteers in public: consent to statistics, teams, and the records that the statistics export publishes. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from domain.credit import NO_CREDIT, Credit
from domain.hosts import Host
from domain.quick import quick_dataclass
from domain.units import Instant, TeamId, VolunteerId


@dataclass(frozen=True, slots=True)
class Participation:
    """What a volunteer chose; None: no team, no consent to the export."""

    team_id: TeamId | None = None
    joined_at: Instant | None = None
    export_consent_at: Instant | None = None


# ---- the records of the export: only with consent, and never an e-mail address


@quick_dataclass(frozen=True, slots=True)
class ExportedVolunteer:
    """`cpid`: the cross-project id, hashed with the e-mail address."""

    volunteer_id: VolunteerId
    name: str
    created_at: Instant
    cpid: str
    team_id: TeamId | None
    credit: Credit = NO_CREDIT


@quick_dataclass(frozen=True, slots=True)
class ExportedTeam:
    """`founder_id` and `founder_name` are None if the founder did not consent."""

    team_id: TeamId
    name: str
    founder_id: VolunteerId | None
    founder_name: str | None
    created_at: Instant
    url: str
    description: str
    credit: Credit = NO_CREDIT


@quick_dataclass(frozen=True, slots=True)
class ExportedHost:
    """`cpid`: the client's id of the computer, hashed with the volunteer's e-mail address."""

    host: Host
    cpid: str
    credit: Credit = NO_CREDIT


@quick_dataclass(frozen=True, slots=True)
class WithdrawnRecord:
    """A deleted account or host that was exported before."""

    id: int
    cpid: str


@dataclass(frozen=True, slots=True)
class ExportTotals:
    """Counts over all owners of credit, with or without consent."""

    volunteers: int
    teams: int
    hosts: int
    volunteers_deleted: int
    hosts_deleted: int
    credit: float
