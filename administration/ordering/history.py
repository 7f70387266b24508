"""Reports the history of usage: sums of returned work by account, submitter, day, week or month, as JSON or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from administration.show import shown
from domain.batches import Account
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.history import month_bounds, month_of
from domain.units import HOUR_S, AccountId, Instant, utc
from muster_client import shapes
from store.postgres import PostgresStore

UNITS = ("day", "week", "month")
WORDS = ("account", "submitter", *UNITS)
MOST_ROWS = 50_000
_DAY = re.compile(r"(?:19[7-9]|[2-9][0-9]{2})[0-9]-[0-9]{2}-[0-9]{2}")


class UsageReports:
    """Reports usage for the command line, the API and the console."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def report(
        self,
        *,
        by: str = "account",
        first_day: str | None = None,
        last_day: str | None = None,
        account: str | None = None,
        submitter: str | None = None,
    ) -> shapes.UsageReported:
        """Return the usage from the first to the last day, both included; by default of this month.

        `by` are words of WORDS with commas between them, at most one of UNITS; `account` includes the accounts below
        it. Raises InvalidInputError, NotFoundError.
        """
        words, today = _words(by), utc(self._clock.now()).date()
        first = today.replace(day=1) if first_day is None else day_of("first_day", first_day)
        last = max(first, today) if last_day is None else day_of("last_day", last_day)
        if last < first:
            raise InvalidInputError("last_day", f"a day from {first} on", last)
        starts_at, ends_at = _at(first), Instant(_at(last) + 86_400.0)
        unit = next((one for one in words if one in UNITS), None)
        rules, people = self._store.ordering_rules, self._store.people
        _check_months(await rules.months_until(), starts_at, ends_at, unit)
        rows = await rules.usage_report(
            starts_at,
            ends_at,
            unit=unit,
            by_account="account" in words,
            by_submitter="submitter" in words,
            accounts=None if account is None else below(await people.accounts(), account),
            submitter_id=None if submitter is None else (await people.submitter(submitter)).submitter_id,
            limit=MOST_ROWS + 1,
        )
        if len(rows) > MOST_ROWS:
            raise InvalidInputError("by", f"at most {MOST_ROWS} rows: fewer words, or fewer days", by)
        usage = [shown(shapes.UsedShown, row) for row in rows]
        return {"first_day": str(first), "last_day": str(last), "by": words, "usage": usage}


def below(accounts: Sequence[Account], name: str) -> list[AccountId]:
    """Return the account with that name and all accounts below it. Raises NotFoundError.

    >>> tree = [Account(AccountId(1), "a"), Account(AccountId(2), "b", AccountId(1)), Account(AccountId(3), "c")]
    >>> below(tree, "a")
    [1, 2]
    """
    found = [one.account_id for one in accounts if one.name == name]
    if not found:
        raise NotFoundError("account", name)
    for above in found:
        found += [one.account_id for one in accounts if one.parent_id == above]
    return found


def columns_of(row: shapes.UsedShown, by: Sequence[str]) -> dict[str, str]:
    """Return a row as text by column: the period and names asked for, instances, hours and service units."""
    period = next((one for one in by if one in UNITS), None)
    cells = {period: f"{utc(row['starts_at']):%Y-%m-%d}"} if period and row["starts_at"] is not None else {}
    cells |= {"account": row["account"] or ""} if "account" in by else {}
    cells |= {"submitter": row["submitter"] or ""} if "submitter" in by else {}
    return cells | {
        "instances": str(row["instances"]),
        "cpu_hours": f"{row['cpu_s'] / HOUR_S:.2f}",
        "gpu_hours": f"{row['gpu_s'] / HOUR_S:.2f}",
        "gb_hours": f"{row['memory_byte_s'] / HOUR_S / 1e9:.2f}",
        "tflop": f"{row['flop'] / 1e12:.2f}",
        "service_units": f"{row['used_su']:.2f}",
    }


def as_csv(report: shapes.UsageReported) -> str:
    """Return the report as CSV with a heading; empty without usage."""
    rows = [columns_of(row, report["by"]) for row in report["usage"]]
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def day_of(field: str, text: str) -> date:
    """Return a day. Raises InvalidInputError.

    >>> day_of("first_day", "2026-02-28")
    datetime.date(2026, 2, 28)
    """
    try:
        if _DAY.fullmatch(text) is None:
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(field, "a day like 2026-03-31", text) from None


def _words(by: str) -> list[str]:
    words = [one.strip() for one in by.split(",")]
    if not set(words) <= set(WORDS) or len(set(words)) < len(words) or len(set(words) & set(UNITS)) > 1:
        raise InvalidInputError("by", f"words of {', '.join(WORDS)}, each once, at most one of the last three", by)
    return words


def _at(day: date) -> Instant:
    return Instant(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _check_months(last_at: Instant | None, starts_at: Instant, ends_at: Instant, unit: str | None) -> None:
    """Refuse a range or a unit that needs days which are kept only by the month. Raises InvalidInputError."""
    if last_at is None:
        return
    days_from = month_bounds(month_of(last_at))[1]
    since = f"usage before {utc(days_from):%Y-%m-%d} is kept by the month (ordering.usage_days)"
    if starts_at < days_from and unit in ("day", "week"):
        raise InvalidInputError("by", f"month instead of {unit}: {since}", unit)
    for field, at in (("first_day", starts_at), ("last_day", ends_at)):
        if at < days_from and utc(at).day != 1:
            day = utc(at) - timedelta(days=field == "last_day")
            raise InvalidInputError(field, f"the {field.split('_')[0]} day of a month: {since}", f"{day:%Y-%m-%d}")
