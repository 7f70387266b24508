"""Reports on the demonstration: progress while it runs, the outcome, and the accuracy of its forecasts."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from administration.project import Project
from demo.load.volunteer import LoadGenerator
from demo.plan import LENGTH
from demo.primes import primes_between
from domain.batches import Batch, BatchState
from domain.forecasts import ForecastRecord, Method
from domain.jobs import InstanceState
from domain.units import BatchId, Instant
from store.postgres import PostgresStore

SHARES = (0.0, 0.5, 0.9)  # fractions of finished jobs at which a forecast is reported


@dataclass(frozen=True, slots=True)
class AgainstFact:
    """A forecast by the background process, in seconds from submission. `ended_s` is None if the batch did not end."""

    batch: str
    made_s: float
    jobs_over: int
    jobs_total: int
    about_s: float
    at_latest_s: float
    ended_s: float | None

    def as_json(self) -> dict[str, object]:
        return {key: round(value, 1) if isinstance(value, float) else value for key, value in asdict(self).items()}


def against_fact(batch: Batch, records: Sequence[ForecastRecord]) -> list[AgainstFact]:
    """Return the first forecast, and the first ones with 50 % and 90 % of the jobs finished. `records` are in
    chronological order.

    Forecasts made after the end, or without any result, are omitted.
    """
    told: list[ForecastRecord] = []
    known = [one for one in records if one.method is not Method.APRIORI]
    before = [one for one in known if batch.ended_at is None or one.made_at < batch.ended_at]
    for share in SHARES:
        reached = [one for one in before if one.jobs_validated + one.jobs_failed >= share * one.jobs_total]
        if reached and reached[0] not in told:
            told.append(reached[0])
    ended_s = None if batch.ended_at is None else batch.ended_at - batch.created_at
    return [
        AgainstFact(
            batch.name,
            one.made_at - batch.created_at,
            one.jobs_validated + one.jobs_failed,
            one.jobs_total,
            one.q50_at - batch.created_at,
            one.q90_at - batch.created_at,
            ended_s,
        )
        for one in told
    ]


def forecast_table(found: Sequence[AgainstFact]) -> Table:
    """Return the table shown on the screen."""
    table = Table("batch", "forecast after", "jobs over", "about", "at the latest", "in fact")
    for one in found:
        table.add_row(
            one.batch,
            f"{one.made_s:.1f} s",
            f"{one.jobs_over}/{one.jobs_total}",
            f"{one.about_s:.0f} s",
            f"{one.at_latest_s:.0f} s",
            "not ended" if one.ended_s is None else f"{one.ended_s:.0f} s",
        )
    return table


LINE_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of one demonstration.

    `wrong_accepted` counts wrong canonical outputs, which a quorum of one cannot detect.
    """

    batches: tuple[Batch, ...]
    crowd: Counter[str]
    stock_client: str
    stock_client_jobs: int
    wrong_accepted: int
    seconds: float
    forecasts: tuple[AgainstFact, ...] = ()

    @property
    def complete(self) -> bool:
        """Return whether all batches ended with all jobs valid."""
        return all(b.state is BatchState.COMPLETE and b.counts.jobs_failed == 0 for b in self.batches)

    def as_json(self) -> dict[str, object]:
        """Return the JSON object that the command prints last."""
        return {
            "batches": len(self.batches),
            "batches_complete": sum(b.state is BatchState.COMPLETE for b in self.batches),
            "jobs_total": sum(b.counts.jobs_total for b in self.batches),
            "jobs_validated": sum(b.counts.jobs_validated for b in self.batches),
            "jobs_failed": sum(b.counts.jobs_failed for b in self.batches),
            "retries": sum(b.counts.retries for b in self.batches),
            "instances_sent": sum(b.counts.sent for b in self.batches),
            "deadlines_missed": sum(b.counts.deadlines_missed for b in self.batches),
            "wrong_accepted": self.wrong_accepted,
            "stock_client": self.stock_client,
            "stock_client_jobs": self.stock_client_jobs,
            "crowd": dict(self.crowd),
            "forecasts": [one.as_json() for one in self.forecasts],
            "seconds": round(self.seconds, 1),
        }


class Screen:
    """Shows live bars on a terminal and occasional lines elsewhere; shows nothing if quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=False)
        self._live: Live | None = None
        self._last_line_s = float("-inf")

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, soft_wrap=True)

    def show(self, batches: Sequence[Batch], now: Instant, elapsed_s: float) -> None:
        """Show the batches' current state."""
        if self._quiet:
            return
        if self._console.is_terminal:
            if self._live is None:
                self._live = Live(console=self._console, refresh_per_second=4)
                self._live.start()
            self._live.update(_bars(batches, elapsed_s))
        elif elapsed_s - self._last_line_s >= LINE_EVERY_S:
            self._last_line_s = elapsed_s
            done = ", ".join(f"{b.name} {b.counts.jobs_validated}/{b.counts.jobs_total}" for b in batches)
            self._console.print(f"{elapsed_s:5.0f} s  {done}")
            sys.stdout.flush()

    def final(self, outcome: BatchOutcome) -> None:
        """Show the final table."""
        if self._live is not None:
            self._live.stop()
        if self._quiet:
            return
        self._console.print(_table(outcome))
        self._console.print("forecasts, in seconds from submission:")
        self._console.print(forecast_table(outcome.forecasts))
        counts = ", ".join(f"{count} {what}" for what, count in sorted(outcome.crowd.items()))
        self._console.print(
            f"simulated volunteers: {counts}; stock client {outcome.stock_client} ({outcome.stock_client_jobs} jobs)"
        )
        if outcome.wrong_accepted:
            wrong = f"{outcome.wrong_accepted} wrong results were accepted"
            self._console.print(f"{wrong}: a quorum of one has no second result to compare")
        ended = "all batches are complete" if outcome.complete else "NOT all batches are complete"
        self._console.print(f"{ended} after {outcome.seconds:.0f} s")


def _bars(batches: Sequence[Batch], elapsed_s: float) -> Group:
    table = Table("batch", "kind", "", "valid", "in progress", "retries", "missed", box=None)
    for batch in batches:
        counts = batch.counts
        table.add_row(
            batch.name,
            batch.qos.value,
            ProgressBar(total=counts.jobs_total, completed=counts.jobs_validated, width=30),
            f"{counts.jobs_validated}/{counts.jobs_total}",
            str(counts.in_progress),
            str(counts.retries),
            str(counts.deadlines_missed),
        )
    return Group(table, f"{elapsed_s:.0f} s")


def _table(outcome: BatchOutcome) -> Table:
    table = Table("batch", "kind", "valid", "sent", "retries", "in time", "done after")
    for batch in outcome.batches:
        counts = batch.counts
        met = counts.sent - counts.deadlines_missed
        took = f"{batch.ended_at - batch.created_at:.1f} s" if batch.ended_at is not None else batch.state.value
        table.add_row(
            batch.name,
            batch.qos.value,
            f"{counts.jobs_validated}/{counts.jobs_total}",
            str(counts.sent),
            str(counts.retries),
            f"{met}/{counts.sent}",
            took,
        )
    return table


async def outcome_of(
    store: PostgresStore, project: Project, ids: Sequence[BatchId], load: LoadGenerator, *, stock: str, seconds: float
) -> BatchOutcome:
    """Read the outcome from the database and the upload directory."""
    load_hosts = {f"volunteer-{number}" for number in load.tallies}
    hosts = {host.host_id: host.domain_name for host in await store.views.hosts(limit=1000)}
    wrong, stock_jobs = 0, 0
    for batch_id in ids:
        for listed in await store.views.jobs(batch_id, limit=10_000):
            job = await store.views.job(listed.job_id)
            for instance in job.instances:
                if instance.state is InstanceState.VALID and instance.host_id is not None:
                    stock_jobs += hosts.get(instance.host_id) not in load_hosts
                if instance.instance_id == job.canonical_instance_id:
                    wrong += not _is_right(project, instance.uploads[0].name)
    tallies = load.tallies.values()
    counted = Counter(
        requests=sum(t.requests for t in tallies),
        jobs=sum(t.jobs for t in tallies),
        failed=sum(t.failed for t in tallies),
        left=sum(t.left for t in tallies),
    )
    batches = tuple([await store.views.batch(batch_id) for batch_id in ids])
    forecasts = [
        one
        for batch in batches
        for one in against_fact(batch, await store.forecasts.series(batch.batch_id, limit=1000))
    ]
    return BatchOutcome(batches, counted, stock, stock_jobs, wrong, seconds, tuple(forecasts))


def _is_right(project: Project, upload: str) -> bool:
    """Return whether an uploaded output has the correct number of primes."""
    [path] = project.upload_dir.rglob(upload)
    match = re.fullmatch(r"(\d+) (\d+) (\d+)\n", path.read_text(errors="replace"))
    return match is not None and primes_between(int(match[1]), LENGTH) == int(match[3])
