"""Manages batches: submits, shows, changes and aborts them. Reads batch files and names their input files."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import structlog

from administration.batch_errors import LOOKED_AT, TAIL_CHARS, grouped
from administration.batch_lists import list_page
from administration.catalogue import fresh_catalogue
from administration.explain.batch import hold_of, unable_in_words
from administration.explain.verdict import start_in_words
from administration.forecasts.service import end_of, preview_as_json
from administration.ordering.importance import ImportanceBody, set_importance
from administration.ordering.places import Urgent, sent_first, turn_of
from administration.show import shown
from administration.stopped import NOTHING_STOPPED, Stopped, stopped_of
from batch_estimator.preview import Previewer
from domain.batches import UNNUMBERED, Batch, QoS
from domain.clock import Clock
from domain.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError
from domain.forecasts import ForecastRecord
from domain.formatting import in_words
from domain.insight import Short
from domain.jobs import Input
from domain.queue_hosts import queue_hosts
from domain.settings import Settings
from domain.submission import NewBatch, SubmissionKey, SubmittedBefore
from domain.units import BatchId, Instant
from domain.views import BatchChoice, BatchPlace, BatchSort, ListedBatch, Whose
from jobs.requirements import InputSpec
from jobs.spec import BatchSpec, parse_batch, parse_for_all_errors, with_rows
from jobs.submission import (
    CheckedBatch,
    CopiedJobs,
    SubmissionPorts,
    checked,
    classes_to_copy,
    foreseen,
    write,
)
from jobs.table import Row
from muster_client import shapes
from store.postgres import PostgresStore
from transfer.files import content_of
from transfer.project_files import ProjectFiles

MOST_QUEUE_HOSTS = 1000  # of the active hosts, checked against the conditions of a queue
UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def input_file_name(path: Path, md5: str) -> str:
    """Return a file name unique to the file's content.

    >>> input_file_name(Path("data/my input.txt"), "0123456789abcdef" * 2)
    'my-input_0123456789abcdef0123456789abcdef.txt'
    """
    suffix = path.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", path.suffix) else ""
    return f"{UNSAFE.sub('-', path.stem)[:80] or 'input'}_{md5}{suffix}"


class UploadedInputs:
    """Implements InputFiles for submissions, with files uploaded earlier."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files

    async def input_files(self, wanted: Sequence[InputSpec]) -> Sequence[Input]:
        """Return the inputs in the given order. Raises NotFoundError, InvalidInputError."""
        return await asyncio.gather(*map(self._named, wanted))

    async def _named(self, wanted: InputSpec) -> Input:
        if not wanted.name:
            raise InvalidInputError("inputs.path", "the name of a file uploaded to /api/v1/files", wanted.path)
        content = await self._files.download_content(wanted.name)
        if content is None:
            raise NotFoundError("input file", wanted.name)
        return Input(wanted.name, wanted.open_name, content.nbytes, content.md5, wanted.sticky)


DEFAULT_SUBMITTER = "default"
CLONES_AT_ONCE = 2  # per process: each holds a connection and needs another
CLONED_NEEDS = ("memory_bytes", "disk_bytes", "delay_bound_s")  # a clone may change them for all its jobs

log = structlog.get_logger()


MOST_DEPTH, MOST_BITS, MOST_KEY_PARTS = 16, 4096, 100
SHALLOW, SHORT = f"tables and lists at most {MOST_DEPTH} deep", f"integers of at most {MOST_BITS} bits"
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
LONG_KEY = re.compile(
    rf"(?<![\w-])(?:{_PART}\.[ \t]*+){{{MOST_KEY_PARTS}}}"
)  # tomllib is quadratic in the parts of a key


def read_batch_file(path: Path) -> dict[str, object]:
    """Return the contents of a TOML or JSON file as a table. Raises InvalidInputError."""
    field, kind = str(path), "JSON" if path.suffix == ".json" else "TOML"
    try:
        text = path.read_text()
        if kind == "TOML" and LONG_KEY.search(text):
            raise InvalidInputError(field, f"keys of at most {MOST_KEY_PARTS} parts", "more")
        values = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except OSError as error:
        raise InvalidInputError("batch file", "a readable file", f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(field, "UTF-8 text", "other bytes") from None
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise InvalidInputError(field, f"a {kind} file", str(error)) from None
    except RecursionError:
        raise InvalidInputError(field, SHALLOW, "more") from None
    except ValueError:  # an integer with more digits than Python converts
        raise InvalidInputError(field, SHORT, "more") from None
    check_shape(values, field)
    if not isinstance(values, dict):
        raise InvalidInputError(field, "a table", values)
    return values


def check_shape(values: object, field: str) -> None:
    """Raise InvalidInputError for values that are nested too deeply or have integers too long to be shown."""
    level = [values]
    for _ in range(MOST_DEPTH):
        if any(isinstance(one, int) and one.bit_length() > MOST_BITS for one in level):
            raise InvalidInputError(field, SHORT, "more")
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
        level = [value for one in inner for value in one]
    if any(isinstance(one, (dict, list)) for one in level):
        raise InvalidInputError(field, SHALLOW, "more")


MOST_LINE_BYTES = 1 << 20  # of JSON Lines


def table_rows(path: Path, name: str) -> Iterator[Row]:
    """Yield the rows of a CSV file with a header row, or of a JSON Lines file: its `name` ends in .jsonl.

    Raises InvalidInputError.
    """
    try:
        yield from _json_rows(path) if name.endswith(".jsonl") else _csv_rows(path)
    except OSError as error:
        raise InvalidInputError("jobs_csv", "a readable file", f"{path.name}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError("jobs_csv", "a CSV file in UTF-8", str(error)) from None


def _csv_rows(path: Path) -> Iterator[Row]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(csv.DictReader(file), start=1):
            if None in row or None in row.values():
                raise InvalidInputError(f"jobs_csv row {number}", "as many cells as the header row", "more or fewer")
            yield row


def _json_rows(path: Path) -> Iterator[Row]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(line) > MOST_LINE_BYTES:
                raise InvalidInputError(f"jobs_csv row {number}", f"a line of at most {MOST_LINE_BYTES} bytes", "more")
            if not line.strip():
                continue
            try:
                yield decoder.decode(line)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise InvalidInputError(f"jobs_csv row {number}", "a JSON object in one line", str(error)) from None


def batch_as_json(
    batch: Batch,
    whose: Whose | ListedBatch,
    last: ForecastRecord | None,
    short: Short | None,
    stopped: Stopped,
    *,
    now: Instant,
) -> shapes.BatchShown:
    """Return a batch with its counters; `short`, `stopped`: why no recently active host can finish it."""
    stuck = stopped.group_of(batch) or short
    return shown(
        shapes.BatchShown,
        end_of(batch, last, stopped, now),
        batch,
        batch.counts,
        whose,
        waits_for=None if stuck is None else stuck.waits_for,
        waits_because=None if stuck is None else stuck.reason,
    )


class Batches:
    """Manages batches for the command line, the API and the pages."""

    def __init__(self, store: PostgresStore, files: ProjectFiles, clock: Clock) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._clones = asyncio.Semaphore(CLONES_AT_ONCE)

    async def submit(self, values: Mapping[str, object], *, copy_of: BatchId | None = None) -> BatchId:
        """Submit a batch, with the jobs of `copy_of` if given. Raises InvalidInputError or NotFoundError, and then
        stores nothing.
        """
        settings = await self._settings()
        async with self._checked(values, settings, copy_of) as batch:
            batch_id, _ = await self._write(batch, settings)
            return batch_id

    async def submit_and_preview(
        self,
        values: Mapping[str, object],
        *,
        key: SubmissionKey | None = None,
        copy_of: BatchId | None = None,
        by_operator: bool = False,
    ) -> tuple[shapes.Submitted, bool]:
        """Submit a batch and return its id and forecast, which is None if the forecast failed, and True.

        A repeated `key` returns the earlier reply and False. Raises ConflictError if it was used for a different batch.
        """
        settings = await self._settings()
        if key is not None:
            key = replace(key, kept_s=settings.access.submission_key_s)
            if earlier := await self._store.submissions.submitted_before(key, now=self._clock.now()):
                return _earlier_reply(earlier, key), False
        async with self._checked(values, settings, copy_of, by_operator=by_operator) as batch:
            try:
                batch_id, new = await self._write(batch, settings, key)
            except AlreadyExistsError:
                earlier = (
                    None if key is None else await self._store.submissions.submitted_before(key, now=self._clock.now())
                )
                if key is None or earlier is None:
                    raise
                return _earlier_reply(earlier, key), False  # a concurrent request submitted it
            try:
                forecast = await self._preview(batch, new, settings, batch_id)
            except Exception:
                log.exception("forecast of a new batch failed", batch_id=batch_id)
                forecast = None
        answer: shapes.Submitted = {"batch_id": batch_id, "forecast": forecast}
        if key is not None:
            await self._store.submissions.note_answer(key, answer)
        return answer, True

    async def submitted(self, batch_id: BatchId) -> dict[str, object]:
        """Return what the audit trail records about a submission: name, app, submitter and number of jobs."""
        views = self._store.views
        batch, whose = await views.batch(batch_id), (await views.whose([batch_id]))[batch_id]
        named = {"app": whose.app, "submitter": whose.submitter, "jobs": batch.counts.jobs_total}
        return {"name": batch.name, **named} if batch.name else named

    async def preview(
        self, values: Mapping[str, object], *, copy_of: BatchId | None = None, by_operator: bool = False
    ) -> shapes.PreviewShown:
        """Return the forecast of a batch as if it were submitted now. Checks it like `submit`; stores nothing."""
        settings = await self._settings()
        async with self._checked(values, settings, copy_of, by_operator=by_operator) as batch:
            return await self._preview(batch, await self._foreseen(batch, settings), settings)

    async def checked_preview(
        self, values: Mapping[str, object], *, by_operator: bool
    ) -> tuple[shapes.PreviewShown, CheckedBatch]:
        """Return the forecast and the batch, for a user to confirm. Stores nothing. An error has others."""
        settings = await self._settings()
        async with self._checked(values, settings, None, by_operator=by_operator, parse=parse_for_all_errors) as batch:
            return await self._preview(batch, await self._foreseen(batch, settings), settings), batch

    async def values_of(self, batch_id: BatchId, changes: Mapping[str, object]) -> dict[str, object]:
        """Return the table of a batch file for a clone, without jobs. Keys in `changes` that are None are unchanged.

        A clone for another submitter is charged to that submitter's account. A deadline is as far ahead as it was when
        the batch was submitted. Changed needs (CLONED_NEEDS) are those of all jobs. Raises NotFoundError.
        """
        batch = await self._store.views.batch(batch_id)
        whose = (await self._store.views.whose([batch_id]))[batch_id]
        given = {name: value for name, value in changes.items() if value is not None}
        needs = {name: given.pop(name) for name in CLONED_NEEDS if name in given}
        values = {
            "app": whose.app,
            "name": batch.name,
            "qos": batch.qos.value,
            "submitter": whose.submitter,
            "queue": batch.queue,
            "level": batch.level.value,
            "user_priority": batch.user_priority,
            **given,
        }
        if needs:
            values["jobs"] = needs
        if values["submitter"] == whose.submitter:
            values.setdefault("account", whose.account)
        if values["qos"] == QoS.SHORT_DEADLINE and batch.deadline_at is not None:
            values.setdefault("deadline_s", batch.deadline_at - batch.created_at)
        return values

    async def keep_file(self, path: Path, name: str) -> str:
        """Store a table or an input file for batches. Return its name on the server. Raises InvalidInputError."""
        most = (await self._settings()).files.max_input_bytes
        stored = input_file_name(Path(name), (await asyncio.to_thread(content_of, path)).md5)
        content = await self._files.register(path, stored, max_bytes=most)
        now = self._clock.now()
        await self._store.applications.add_file(stored, nbytes=content.nbytes, md5=content.md5, signature="", now=now)
        return stored

    async def retry(self, batch_id: BatchId) -> shapes.Retried:
        """Open the failed jobs of a batch again. Raises NotFoundError, ConflictError."""
        retried = await self._store.repeating.retry_failed(batch_id, now=self._clock.now())
        batch = await self._store.views.batch(batch_id)
        return shown(shapes.Retried, batch, batch.counts, jobs_retried=retried)

    async def change(self, batch_id: BatchId, asked: ImportanceBody, *, by_operator: bool) -> shapes.Importance:
        """Change the given fields. Raises the same errors as `set_importance`."""
        now = self._clock.now()
        stopped = NOTHING_STOPPED if asked.level is None else await stopped_of(self._store, self._clock)
        await set_importance(self._store, batch_id, asked, by_operator=by_operator, now=now, stopped=stopped)
        batch = await self._store.views.batch(batch_id)
        names = {one.account_id: one.name for one in await self._store.people.accounts()}
        return shown(shapes.Importance, batch, account=names[batch.account_id])

    async def errors(self, batch_id: BatchId) -> shapes.BatchErrors:
        """Return the grouped errors of a batch. Raises NotFoundError."""
        batch = await self._store.views.batch(batch_id)
        failed = await self._store.repeating.failures(batch_id, limit=LOOKED_AT, stderr_chars=TAIL_CHARS)
        counts = Counter(one.state for one in failed)
        return grouped(batch.batch_id, failed, more=any(count >= LOOKED_AT for count in counts.values()))

    async def _settings(self) -> Settings:
        return await self._store.settings.in_force()

    @asynccontextmanager
    async def _checked(
        self,
        values: Mapping[str, object],
        settings: Settings,
        copy_of: BatchId | None,
        *,
        by_operator: bool = False,
        parse: Callable[..., BatchSpec] = parse_batch,
    ) -> AsyncIterator[CheckedBatch]:
        """Yield the batch. Its CSV file is read when it is checked and again when it is stored, so the copy stays."""
        needs = cast(Mapping[str, object], values.get("jobs", {})) if copy_of is not None else {}
        if copy_of is not None:
            values = {**values, "jobs": {**needs, "count": 1, "fpops_est": 1.0}}  # replaced by the copied jobs
        try:
            described = {"submitter": DEFAULT_SUBMITTER, **values}
            spec = await asyncio.to_thread(parse, described, files=settings.files)
        except InvalidInputError as error:
            if copy_of is None:
                raise
            raise InvalidInputError(error.field.removeprefix("jobs."), error.expected, error.got) from None
        ports = SubmissionPorts(
            self._store.submissions,
            self._store.people,
            self._store.applications,
            UploadedInputs(self._files),
        )
        if copy_of is not None:
            jobs, batch = self._store.repeating, await self._store.views.batch(copy_of)
            changed = {name: getattr(next(iter(spec.jobs)).job_class, name) for name in needs}
            classes = [replace(one, **changed) for one in await self._store.views.classes_of_batch(copy_of)]
            spec = replace(spec, jobs=await classes_to_copy(copy_of, batch.counts.jobs_total, classes, jobs))
            yield replace(
                await checked(spec, ports=ports, by_operator=by_operator), copied=CopiedJobs(copy_of, classes, jobs)
            )
            return
        if not spec.jobs_csv:
            yield await checked(spec, ports=ports, by_operator=by_operator)
            return
        found = await self._files.download(spec.jobs_csv)
        if found is None:
            raise InvalidInputError("jobs_csv", "the name of a file uploaded to /api/v1/files", spec.jobs_csv)
        async with self._files.local([found]) as [path]:
            with_jobs = with_rows(spec, lambda: table_rows(path, spec.jobs_csv), files=settings.files)
            yield await checked(with_jobs, ports=ports, by_operator=by_operator)

    async def _write(
        self, batch: CheckedBatch, settings: Settings, key: SubmissionKey | None = None
    ) -> tuple[BatchId, NewBatch]:
        submissions, ordering = self._store.submissions, settings.ordering
        async with nullcontext() if batch.copied is None else self._clones:
            return await write(batch, submissions=submissions, ordering=ordering, clock=self._clock, key=key)

    async def _foreseen(self, batch: CheckedBatch, settings: Settings) -> NewBatch:
        return await foreseen(batch, submissions=self._store.submissions, ordering=settings.ordering, clock=self._clock)

    async def _preview(
        self, batch: CheckedBatch, new: NewBatch, settings: Settings, batch_id: BatchId = UNNUMBERED
    ) -> shapes.PreviewShown:
        planned = batch.planned(new, batch_id)
        previewer = Previewer(self._store.forecasting, self._store.forecasts, settings, self._clock)
        preview, catalogue = (
            await previewer.preview(planned),
            await fresh_catalogue(self._store.applications, self._clock),
        )
        placed = new.as_batch(batch_id)
        now = self._clock.now()
        unrunnable = (await stopped_of(self._store, self._clock)).unrunnable
        first = await sent_first(self._store, catalogue, now, unrunnable)
        _, ahead = await turn_of(self._store, placed, first, catalogue, now, unrunnable)
        blocked = hold_of(placed, catalogue)
        start = f"blocked: {blocked}" if blocked else start_in_words(ahead)
        unable = ""
        if batch_id == UNNUMBERED:  # a submission does not wait for the hosts' dry runs
            start += f"; the ordering, every {in_words(settings.ordering.interval_s)}, may then move it"
            start += await self._hosts_of(placed, settings, now)
            if not blocked:
                classes = batch.size.classes
                unable = await unable_in_words(self._store, self._clock, placed, classes, catalogue)
        return preview_as_json(preview, planned, ahead, start, unable)

    async def _hosts_of(self, batch: Batch, settings: Settings, now: Instant) -> str:
        """Return a clause on how many active hosts meet the conditions of a batch's queue, "" without conditions."""
        conditions = queue_hosts(settings.ordering.queue_hosts).get(batch.queue)
        if conditions is None:
            return ""
        since = Instant(now - settings.ranking.active_s)
        sample = await self._store.insight.sampled_hosts(MOST_QUEUE_HOSTS, active_since=since)
        met = sum(all(one.unmet(found.host) is None for one in conditions) for found in sample.hosts)
        some = "a sample of " if len(sample.hosts) < sample.active else ""
        hosts, words = f"{met} of {some}{len(sample.hosts)} active hosts", ", ".join(one.words for one in conditions)
        return f"; {hosts} meet the conditions of queue {batch.queue}: {words}"

    async def show(self, batch_id: BatchId) -> shapes.OneBatchShown:
        """Return a batch as JSON. Raises NotFoundError."""
        batch = await self._store.views.batch(batch_id)
        stopped = await stopped_of(self._store, self._clock)
        [one] = await self._as_json([batch], await self._store.views.whose([batch_id]), stopped)
        ordered = (await self._store.ordering_rules.breakdowns([batch_id])).get(batch_id, {})
        return {**one, "paid_by": str(ordered.get("queue", ""))}

    async def listed(
        self, choice: BatchChoice, sort: BatchSort, *, after: BatchPlace | None, limit: int
    ) -> tuple[Sequence[shapes.BatchShown], BatchPlace | None]:
        """Return a page of batches as JSON, and the place after which the next one starts; None on the last page."""
        stopped = await stopped_of(self._store, self._clock)
        first: Urgent = {}
        if sort.key == "order":
            catalogue = await fresh_catalogue(self._store.applications, self._clock)
            first = await sent_first(self._store, catalogue, self._clock.now(), stopped.unrunnable)
        found, last = await list_page(
            self._store, choice, sort, after=after, limit=limit, not_sent=stopped.not_sent, first=first
        )
        whose = {one.batch.batch_id: one for one in found}
        return await self._as_json([one.batch for one in found], whose, stopped), last

    async def abort(self, batch_id: BatchId) -> None:
        """Abort a batch. Raises NotFoundError."""
        await self._store.submissions.abort_batch(batch_id, now=self._clock.now())

    async def _as_json(
        self, batches: Sequence[Batch], whose: Mapping[BatchId, Whose | ListedBatch], stopped: Stopped
    ) -> list[shapes.BatchShown]:
        active = [batch.batch_id for batch in batches if batch.ended_at is None]
        last = await self._store.forecasts.last(active) if active else {}
        short: Mapping[BatchId, Short] = {}
        now = self._clock.now()
        if active:
            since = Instant(now - (await self._settings()).ranking.active_s)
            short = await self._store.insight.short(active, active_since=since)
        return [
            batch_as_json(one, whose[one.batch_id], last.get(one.batch_id), short.get(one.batch_id), stopped, now=now)
            for one in batches
        ]


def _earlier_reply(earlier: SubmittedBefore, key: SubmissionKey) -> shapes.Submitted:
    if earlier.said != key.said:
        raise ConflictError(f"batch {earlier.batch_id} was submitted with key {key.key!r}; this is a different batch")
    if earlier.answer is None:
        return {"batch_id": earlier.batch_id, "forecast": None}
    return cast(shapes.Submitted, earlier.answer)
