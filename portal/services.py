"""Common parts of the volunteer pages: the visitor, texts, and refusals worded for volunteers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

from administration.access.who import WrongPasswordError, volunteer_of
from administration.accounts import AccountKeys
from administration.volunteers import offered
from domain.apps import App
from domain.catalogue import Catalogue
from domain.errors import AlreadyExistsError, InvalidInputError, MusterError
from domain.hosts import Host, HostAppVersion
from domain.ranking import Percentile
from domain.refusals import Whys, traits_of
from domain.units import Seconds
from domain.volunteers import Outcome
from web.handlers import PageServices
from web.moments import percent
from web.rendering import PageStyle

Document = Mapping[str, Any]  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why a computer got no work, with advice and the scheduler's message."""

    words: str
    advice: str
    said: str


LABELS = {
    "email": "E-mail",
    "max_jobs": "Maximum jobs in progress per computer",
    "max_cpus": "Maximum CPUs per job",
    "apps": "Applications",
}

OUTCOME_WORDS: Mapping[Outcome, tuple[str, str, str]] = {  # name, kind of tag, meaning
    Outcome.WAITING: ("being checked", "accent", "Reported; not yet compared with another computer's result."),
    Outcome.VALID: ("valid", "good", "Agrees with other results, or passed the project's check."),
    Outcome.WRONG: ("not confirmed", "bad", "Differs from the results of other computers."),
    Outcome.FAILED: ("failed", "bad", "The program ended with an error, or an output file is missing."),
    Outcome.LATE: ("too late", "warn", "Not reported by the due date."),
    Outcome.DROPPED: ("dropped", "", "Aborted or no longer needed; does not count against the computer."),
}


def told(error: MusterError | None) -> str | None:
    """Describe a form's error using the labels that the user sees.

    >>> told(InvalidInputError("password", "6 to 200 characters", "3 of them"))
    'Password: 6 to 200 characters, please.'
    >>> told(AlreadyExistsError("volunteer", "ada@example.org"))
    'An account with this e-mail address already exists.'
    """
    match error:
        case None:
            return None
        case InvalidInputError():
            return f"{LABELS.get(error.field, error.field.capitalize())}: {error.expected}, please."
        case AlreadyExistsError():
            return "An account with this e-mail address already exists."
        case WrongPasswordError():
            return "The e-mail address or the password is wrong."
        case _:
            text = str(error).rstrip(".")
            return f"{text[:1].upper()}{text[1:]}."


def reasons_in_words(whys: Whys) -> tuple[Reason, ...]:
    """Return stored refusals in words, in the same order.

    >>> [one.words for one in reasons_in_words((("no_slots", "no job is ready"), ("of another version", "because")))]
    ['No jobs are available at the moment.', 'because']
    """
    return tuple(_reason(code, said) for code, said in whys)


def _reason(code: str, said: str) -> Reason:
    traits = traits_of(code)
    return Reason(said, "", "") if traits is None else Reason(traits.meaning, traits.remedy, said)


MOST_REASONS = 5  # maximum number of reasons shown from a dry run


def reasons_of_dry_run(shown: Document) -> tuple[Reason, ...]:
    """Return the reasons why a dry run gave no more work, without duplicates, most frequent first.

    `shown` is a host's explanation from `administration.explain`.
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
    for group in shown["groups"]:
        for one in group["refusals"]:
            yield one["code"], one["why"], group["slots"]


def name_of(host: Host) -> str:
    """Return the computer's name as set by its owner."""
    return host.domain_name or f"Computer {host.host_id}"


def processors_of(host: Host) -> str:
    """Describe a computer's processors.

    >>> from domain.units import HostId, VolunteerId
    >>> processors_of(Host(HostId(1), VolunteerId(1), ncpus=4))
    '4 CPUs'
    """
    cpus = f"{host.ncpus} CPU{'s' if host.ncpus != 1 else ''}"
    return ", ".join(
        [cpus, *(f"{gpu.count} {gpu.type} GPU{'s' if gpu.count != 1 else ''}" for gpu in host.coprocessors)]
    )


def standing_in_words(standing: Percentile) -> str:
    """Compare a computer with the other computers that run the same application.

    >>> standing_in_words(Percentile(0.25, 0.25, 0.5))
    'Better than 25 % of computers: faster than 25 %, and with more consecutive valid results than 50 %.'
    >>> standing_in_words(Percentile(None, reason="newcomer: too few results to be ranked"))
    'New: too few results to compare.'
    """
    if standing.p is None:
        return "New: too few results to compare."
    if standing.x is None or standing.y is None:
        if standing.p == 0.0:
            return "Its last result failed; the next valid result clears this. Too few computers for a comparison."
        return "No recent failure. Too few computers for a comparison."
    return (
        f"Better than {percent(standing.p)} of computers: faster than {percent(standing.x)}, "
        f"and with more consecutive valid results than {percent(standing.y)}."
    )


def usual_turnaround_s(hav: HostAppVersion) -> Seconds | None:
    """Return the usual time from sending to reporting: the geometric mean over valid results.

    >>> from domain.units import AppVersionId, HostId
    >>> round(usual_turnaround_s(HostAppVersion(HostId(1), AppVersionId(1), log_n=2, log_sum=16.0)))
    2981
    """
    return Seconds(exp(hav.log_sum / hav.log_n)) if hav.log_n > 0 else None


SECTIONS = (
    ("computers", "My computers", "Their activity, and why a computer got no work"),
    ("results", "My results", "In progress, valid, failed"),
    ("teams", "Teams", "Find, found, join and leave a team"),
    ("preferences", "Preferences", "Applications, processors and limits"),
    ("account", "Account", "Your credit, your password, and how to add a computer"),
)
SAID = {
    "joined": "Your account is ready. Now add the project in your BOINC client, as described below.",
    "preferences": "Saved. Each computer applies the preferences to new work at its next contact.",
    "email": "Your e-mail address has been changed. Use the new address to sign in.",
    "verify": "A link was sent to the new address. Open it within an hour; the old address stays until then.",
    "deleted": "Your account has been deleted. Also remove the project in your BOINC client.",
    "mailed": "If there is an account with this address, a message with a link has been sent to it.",
    "reset": "Your password has been changed. Sign in with the new password.",
    "computer": "The computer has been removed. If its client contacts the project again, it reappears in the list.",
    "founded": "You have founded a team and are its first member.",
    "team": "Saved.",
    "member": "You are now a member. The credit for your new results also counts for the team.",
    "left": "You are no longer a member. The team keeps the credit that it earned.",
    "dissolved": "The team has been deleted.",
    "statistics": "Saved. The change takes effect in the next daily export of the statistics.",
    "password": "Your password has been changed. Your computers stay attached; other browsers are signed out.",
}
LOOK = PageStyle("portal", "site.html", ("computers", "My computers"), True, SECTIONS, (), SAID, volunteer_of)


@dataclass(frozen=True, slots=True)
class PortalServices(PageServices):
    """Dependencies of the volunteers' pages, including account keys."""

    keys: AccountKeys


def apps_offered(catalogue: Catalogue) -> list[App]:
    """Return the applications that volunteers can select, in display order."""
    return sorted(offered(catalogue), key=lambda app: (app.beta, title_of(app).lower()))


def title_of(app: App) -> str:
    """Return an application's display name."""
    return app.user_friendly_name or app.name


def titles_of(catalogue: Catalogue) -> dict[str, str]:
    """Return display names by application name."""
    return {app.name: title_of(app) for app in catalogue.apps.values()}
