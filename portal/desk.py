"""What every volunteer page works with: the visitor, common parts, and refusals in volunteers' words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Protocol

from administration.access.who import WrongPasswordError, volunteer_of
from administration.accounts import AccountKeys
from administration.explain.service import Explain
from administration.ports import Views, Volunteers
from administration.volunteers import offered
from domain.apps import App
from domain.catalogue import Catalogue
from domain.errors import AlreadyExistsError, InvalidInputError, MusterError
from domain.hosts import Host, HostAppVersion
from domain.ranking import Percentile
from domain.refusals import Whys, traits_of
from domain.units import HostId, Seconds, VolunteerId
from domain.views import ListedInProgress
from domain.volunteers import Outcome, OwnHost, OwnResult, OwnTotals, ResultPlace
from web.handlers import PageDesk
from web.moments import percent
from web.rendering import Look

Document = Mapping[str, Any]  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class Reason:
    """Why there was no job, what can be done about it, and what the scheduler itself said."""

    words: str
    advice: str
    said: str


LABELS = {
    "email": "E-mail",
    "max_jobs": "Most jobs in progress",
    "max_cpus": "Most CPUs of one job",
    "apps": "Applications",
}

OUTCOME_WORDS: Mapping[Outcome, tuple[str, str, str]] = {  # name, kind of tag, what it means
    Outcome.WAITING: ("being checked", "accent", "It came back, and is compared with another computer's result."),
    Outcome.VALID: ("valid", "good", "It agrees with the others, or passed the check."),
    Outcome.WRONG: ("not confirmed", "bad", "Other computers found something else."),
    Outcome.FAILED: ("failed", "bad", "The program ended with an error, or a file is missing."),
    Outcome.LATE: ("too late", "warn", "It was not back by its due date."),
    Outcome.DROPPED: ("dropped", "", "It was aborted, or no longer needed: no fault of the computer."),
}


def told(error: MusterError | None) -> str | None:
    """What was wrong with a form, as its reader calls things.

    >>> told(InvalidInputError("password", "6 to 200 characters", "3 of them"))
    'Password: 6 to 200 characters, please.'
    >>> told(AlreadyExistsError("volunteer", "ada@example.org"))
    'There is an account with that e-mail.'
    """
    match error:
        case None:
            return None
        case InvalidInputError():
            return f"{LABELS.get(error.field, error.field.capitalize())}: {error.expected}, please."
        case AlreadyExistsError():
            return "There is an account with that e-mail."
        case WrongPasswordError():
            return "E-mail and password do not belong together."
        case _:
            text = str(error).rstrip(".")
            return f"{text[:1].upper()}{text[1:]}."


def reasons_in_words(whys: Whys) -> tuple[Reason, ...]:
    """What was kept of a refusal, in the same order.

    >>> [one.words for one in reasons_in_words((("no_slots", "no job is ready"), ("of another version", "because")))]
    ['No jobs are available at the moment.', 'because']
    """
    return tuple(_reason(code, said) for code, said in whys)


def _reason(code: str, said: str) -> Reason:
    traits = traits_of(code)
    return Reason(said, "", "") if traits is None else Reason(traits.meaning, traits.remedy, said)


MOST_REASONS = 5  # of a dry run


def reasons_of_dry_run(shown: Document) -> tuple[Reason, ...]:
    """Why a dry run gave no more, each reason once, the most frequent first.

    `shown` is what `administration.explain` says of a host.
    """
    counts: dict[str, int] = {}
    firsts: dict[str, str] = {}
    for code, said, times in _refusals(shown):
        counts[code] = counts.get(code, 0) + times
        firsts.setdefault(code, said)
    codes = sorted(counts, key=lambda code: -counts[code])[:MOST_REASONS]
    return reasons_in_words(tuple((code, firsts[code]) for code in codes))


def _refusals(shown: Document) -> Iterable[tuple[str, str, int]]:
    if shown["refused"] is not None:
        yield shown["refused"]["code"], shown["refused"]["why"], 1_000_000
    for one in shown["refused_at_large"]:
        yield one["code"], one["why"], 1
    for group in shown["groups"]:
        for look in group["looks"]:
            if look["code"] is not None:
                yield look["code"], look["why"], group["slots"]
            for one in look["passed_over"]:
                yield one["code"], one["why"], one["slots"]


def name_of(host: Host) -> str:
    """What its owner calls a computer."""
    return host.domain_name or f"Computer {host.host_id}"


def processors_of(host: Host) -> str:
    """The processors of a computer.

    >>> from domain.units import HostId, VolunteerId
    >>> processors_of(Host(HostId(1), VolunteerId(1), ncpus=4))
    '4 CPUs'
    """
    cpus = f"{host.ncpus} CPU{'s' if host.ncpus != 1 else ''}"
    return ", ".join(
        [cpus, *(f"{gpu.count} {gpu.type} GPU{'s' if gpu.count != 1 else ''}" for gpu in host.coprocessors)]
    )


def standing_in_words(standing: Percentile) -> str:
    """How a computer compares with others that do the same work.

    >>> standing_in_words(Percentile(0.25, 0.25, 0.5))
    'Ahead of 25 % of computers: faster than 25 %, with longer runs of valid results than 50 %.'
    >>> standing_in_words(Percentile(None, reason="newcomer: too few results to be ranked"))
    'New: too few results to be compared with others yet.'
    """
    if standing.p is None:
        return "New: too few results to be compared with others yet."
    if standing.x is None or standing.y is None:
        if standing.p == 0.0:
            return (
                "Its last result failed; the next valid one makes that good. There are few computers to compare with."
            )
        return "Fine so far; there are few computers to compare with."
    return (
        f"Ahead of {percent(standing.p)} of computers: faster than {percent(standing.x)}, "
        f"with longer runs of valid results than {percent(standing.y)}."
    )


def usual_turnaround_s(hav: HostAppVersion) -> Seconds | None:
    """How long it usually takes from a job's sending to its report: the geometric mean over valid results.

    >>> from domain.units import AppVersionId, HostId
    >>> round(usual_turnaround_s(HostAppVersion(HostId(1), AppVersionId(1), log_n=2, log_sum=16.0)))
    2981
    """
    return Seconds(exp(hav.log_sum / hav.log_n)) if hav.log_n > 0 else None


SECTIONS = (
    ("computers", "My computers", "What they do, and why one has no work"),
    ("results", "My results", "In progress, valid, failed"),
    ("preferences", "Preferences", "Which work, on which processors, and how much of it"),
    ("account", "Account", "Your password, and how to add a computer"),
)
SAID = {
    "joined": "Welcome! Now add the project in your BOINC client, as below.",
    "preferences": "Saved. Each of your computers takes it over when it calls next; what it has already it still does.",
    "password": "Your password is changed. Your computers stay attached; other browsers are signed out.",
}
LOOK = Look("portal", "site.html", ("computers", "My computers"), True, SECTIONS, SAID, volunteer_of)


class Belongings(Protocol):
    """What belongs to one volunteer, and nothing of others."""

    async def hosts(self, volunteer_id: VolunteerId, *, before: HostId | None, limit: int) -> Sequence[OwnHost]:
        """Newest first."""
        ...

    async def host(self, volunteer_id: VolunteerId, host_id: HostId) -> OwnHost:
        """NotFoundError, for somebody else's too."""
        ...

    async def held(
        self, volunteer_id: VolunteerId, *, host_id: HostId | None, limit: int
    ) -> Sequence[ListedInProgress]:
        """What is in progress, by due date."""
        ...

    async def results(
        self,
        volunteer_id: VolunteerId,
        *,
        outcome: Outcome | None,
        host_id: HostId | None,
        after: ResultPlace | None,
        limit: int,
    ) -> Sequence[OwnResult]:
        """What is over and not in the history yet, the last one sent first.

        Where some are chosen they are looked for among so many of the last that it takes no longer.
        """
        ...

    async def totals(self, volunteer_id: VolunteerId) -> OwnTotals: ...


@dataclass(frozen=True, slots=True)
class SiteDesk(PageDesk):
    """What the volunteers' pages work with: their part of the store, dry runs, and the account keys too."""

    belongings: Belongings
    volunteers: Volunteers
    views: Views
    explain: Explain
    keys: AccountKeys


def apps_offered(catalogue: Catalogue) -> list[App]:
    """Applications that volunteers may choose from, in the order of a list."""
    return sorted(offered(catalogue), key=lambda app: (app.beta, title_of(app).lower()))


def title_of(app: App) -> str:
    """What people call an application."""
    return app.user_friendly_name or app.name


def titles_of(catalogue: Catalogue) -> dict[str, str]:
    """The same by the application's name."""
    return {app.name: title_of(app) for app in catalogue.apps.values()}
