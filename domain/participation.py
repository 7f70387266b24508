"""Public data about volunteers: consent to statistics, teams, and the records of the statistics export. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from domain.credit import NO_CREDIT, Credit
from domain.hosts import Host
from domain.quick import quick_dataclass
from domain.units import Instant, TeamId, VolunteerId


@dataclass(frozen=True, slots=True)
class Participation:
    """What a volunteer chose. None: no team, or no consent to the export."""

    team_id: TeamId | None = None
    joined_at: Instant | None = None
    export_consent_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Team:
    """A team of volunteers. If `exported`, the founder consented to the statistics, and `founder_name` is public."""

    team_id: TeamId
    name: str
    founder_id: VolunteerId
    founder_name: str
    exported: bool
    url: str
    description: str
    created_at: Instant
    members: int
    credit: Credit = NO_CREDIT

    @property
    def exported_form(self) -> ExportedTeam:
        """Return the team's record for the statistics export."""
        return ExportedTeam(
            self.team_id,
            self.name,
            self.founder_id if self.exported else None,
            self.founder_name if self.exported else None,
            self.created_at,
            self.url,
            self.description,
            self.credit,
        )


@dataclass(frozen=True, slots=True)
class TeamMember:
    """A member of a team. `exported`: with consent to the statistics."""

    volunteer_id: VolunteerId
    name: str
    exported: bool
    credit: Credit = NO_CREDIT


@dataclass(frozen=True, slots=True)
class News:
    """News for volunteers."""

    news_id: int
    title: str
    body: str
    posted_at: Instant
    posted_by: str


@dataclass(frozen=True, slots=True)
class ProjectFigures:
    """Counts for the status page; `_today` counts the last day. `average`: recent credit per day of all volunteers."""

    volunteers: int
    hosts: int
    volunteers_today: int
    hosts_today: int
    volunteers_with_credit: int
    hosts_with_credit: int
    volunteers_with_recent_credit: int
    hosts_with_recent_credit: int
    average: float
    jobs_to_validate: int

    @property
    def gigaflops(self) -> float:
        """Return the speed that corresponds to the recent credit: 200 cobblestones per day are 1 GFLOPS."""
        return self.average / 200.0


# ---- the records of the export: only with consent, and never an e-mail address


@quick_dataclass(frozen=True, slots=True)
class ExportedVolunteer:
    """A volunteer in the statistics export. `cpid` is the cross-project id, hashed with the e-mail address."""

    volunteer_id: VolunteerId
    name: str
    created_at: Instant
    cpid: str
    team_id: TeamId | None
    credit: Credit = NO_CREDIT


@quick_dataclass(frozen=True, slots=True)
class ExportedTeam:
    """A team in the statistics export. `founder_id` and `founder_name` are None if the founder did not consent."""

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
    """A host in the statistics export. `cpid` is the client's id of the computer, hashed with the e-mail address."""

    host: Host
    cpid: str
    credit: Credit = NO_CREDIT


@quick_dataclass(frozen=True, slots=True)
class WithdrawnRecord:
    """An account or host that was exported before it was deleted."""

    id: int
    cpid: str


@dataclass(frozen=True, slots=True)
class ExportTotals:
    """Counts over all owners of credit, whether or not they consented."""

    volunteers: int
    teams: int
    hosts: int
    volunteers_deleted: int
    hosts_deleted: int
    credit: float
