"""Submits a batch from uploaded files: checks them and shows a preview, then submits what was checked.

The first form brings the files. Tables and input files are stored under names made from their content, as those of
`muster batch submit` are; the second form has the batch with these names.
"""

from __future__ import annotations

import asyncio
import csv
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote_plus

import msgspec
from aiohttp import BodyPartReader, web

from administration.access.authentication import PARTS
from administration.access.who import NotAllowedError, Person, admit, is_operator
from administration.attention.service import AttentionViews
from administration.batches import Batches, check_shape, read_batch_file
from administration.forecasts.words import preview_parts
from console.batch_forms import (
    BATCHES,
    apps_shown,
    batch_of,
    importance_shown,
    key_of,
    shown_key,
    submitter_of,
)
from domain.access import Role
from domain.errors import InvalidInputError, MusterError
from domain.formatting import both_in_words, size_in_words
from domain.units import BatchId
from jobs.flaws import MOST_FLAWS
from web.guard import MOST_FORM_BYTES
from web.handlers import UPLOAD_PATH, Fields, Pages, PageServices, fields_of, get, post
from web.rendering import RenderedPage

MOST_BYTES = 100_000_000  # of all files together
MOST_BATCH_BYTES = 400_000  # it is sent again with the second form
MOST_SENT_BYTES = MOST_FORM_BYTES - 5000  # the second form has further fields
MOST_TEXT_BYTES = 20_000
MOST_PARTS = 200
MOST_SUFFIX = 20  # characters
KINDS = {"batch": (".toml", ".json"), "table": (".csv", ".jsonl"), "inputs": ()}  # file fields: their endings
EXAMPLE_BATCH = """qos = "throughput"
name = "first files"

[jobs]
command_line = "--seed {seed}"
fpops_est = 3.6e12
outputs = [{ name = "out", max_bytes = 1000000 }]
"""
EXAMPLE_TABLE = """seed,memory_bytes
1,1e8
2,1e8
3,5e8
"""
Table = Mapping[str, Any]  # Any: content of a user's file


@dataclass(slots=True)
class Uploaded:
    """What a form brought: text fields, and files by field, each with its name on the user's computer.

    `instead`: that the table has another name than in the batch file, in words; or empty.
    """

    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[tuple[str, Path]]] = field(default_factory=dict)
    instead: str = ""

    def one(self, kind: str) -> tuple[str, Path] | None:
        """Return the only file of a field, None if there is none. Raises InvalidInputError for several."""
        found = self.files.get(kind, [])
        if len(found) > 1:
            raise InvalidInputError(kind, "one file", f"{len(found)} files")
        return found[0] if found else None


class UploadPages(Pages[PageServices]):
    """The two forms of a batch from files."""

    def __init__(self, services: PageServices, batches: Batches, attention: AttentionViews) -> None:
        super().__init__(services)
        self._attention = attention
        self._batches = batches

    @get(UPLOAD_PATH, "batch_upload")
    async def ask(self, request: web.Request) -> RenderedPage:
        return await self._page(admit(request, Role.SUBMITTER), {})

    @post(UPLOAD_PATH, "batch_upload_post")
    async def check(self, request: web.Request) -> RenderedPage:
        """Store the files, and show the number of jobs and a first forecast. Errors name the file and the line."""
        person = admit(request, Role.SUBMITTER)
        uploaded = Uploaded()
        with tempfile.TemporaryDirectory(prefix="muster-upload-") as folder:
            try:
                await received(request, Path(folder), uploaded)
                values = await self._values(person, uploaded)
                forecast, checked = await self._batches.checked_preview(values, by_operator=is_operator(request))
                batch = _encoded(values)
            except NotAllowedError:
                raise
            except MusterError as error:
                flaws = await asyncio.to_thread(flaws_of, error, uploaded)
                again = [name for found in uploaded.files.values() for name, _ in found]
                return await self._page(
                    person,
                    uploaded.fields,
                    wrong=flaws[0].error,
                    flaws=flaws,
                    again=again,
                    instead=uploaded.instead,
                )
        jobs_total, ends = forecast["jobs_total"], checked.size.ends
        review = {
            "checked": checked,
            "ends": [
                ("First job", ends[0], 0),
                *([("Last job", ends[1], jobs_total - 1)] if jobs_total > 1 else []),
            ],
            "files": [name for found in uploaded.files.values() for name, _ in found],
            "jobs_total": jobs_total,
            "forecast": forecast,
            "texts": preview_parts(forecast),
            "batch": batch,
            "key": shown_key({}, None),
        }
        return await self._page(person, {}, review=review, instead=uploaded.instead)

    @post(f"{UPLOAD_PATH}/submit", "batch_upload_submit")
    async def submit(self, request: web.Request) -> RenderedPage | web.Response:
        person = admit(request, Role.SUBMITTER)
        try:
            fields = await fields_of(request)
            values = _decoded(fields.get("batch", ""))
            values["submitter"] = await submitter_of(self._services, person, values)
            done, is_new = await self._batches.submit_and_preview(
                values, key=key_of(person, fields, "upload"), by_operator=is_operator(request)
            )
        except NotAllowedError:
            raise
        except MusterError as error:
            return await self._page(person, {}, wrong=error)
        if is_new:
            told = await self._batches.submitted(BatchId(done["batch_id"]))
            await self._services.authenticator.note(request, "submit_batch", f"batch {done['batch_id']}", **told)
        return self._services.go(f"batches/{done['batch_id']}", "submitted")

    async def _values(self, person: Person, uploaded: Uploaded) -> dict[str, object]:
        """Return the batch, with files by their names on the server. Raises InvalidInputError."""
        batch, table = uploaded.one("batch"), uploaded.one("table")
        if batch is None and table is None:
            raise InvalidInputError("batch", "a batch file, a table of jobs, or both", "no file")
        if batch is not None:
            values = await asyncio.to_thread(_read, batch[1])
        else:
            values = batch_of(uploaded.fields, self._services.clock.now(), counted=False)
            values["submitter"] = uploaded.fields.get("submitter")
        inputs = {name: await self._batches.keep_file(path, name) for name, path in uploaded.files.get("inputs", [])}
        if inputs:
            values = named(values, inputs)
        if table is not None:
            given, values["jobs_csv"] = values.get("jobs_csv"), await self._batches.keep_file(table[1], table[0])
            if batch is not None and is_other(given, table[0], str(values["jobs_csv"])):
                uploaded.instead = (
                    f"{batch[0]} names {given} as jobs_csv; the uploaded table {table[0]} takes its place"
                )
        values["submitter"] = await submitter_of(self._services, person, values)
        return values

    async def _page(
        self,
        person: Person,
        form: Fields,
        *,
        wrong: MusterError | None = None,
        review: Mapping[str, object] | None = None,
        **shown: object,
    ) -> RenderedPage:
        values: dict[str, Any] = {  # Any: what the template takes
            "form": form,
            "wrong": wrong,
            "flaws": () if wrong is None else (FileFlaw(wrong),),
            "again": (),
            "instead": "",
            **shown,
            "review": review,
            **await apps_shown(self._services, self._attention),
            **await importance_shown(self._services, person),
            "example_table": EXAMPLE_TABLE,
            "most_batch": MOST_BATCH_BYTES,
            "most_bytes": MOST_BYTES,
            "most_flaws": MOST_FLAWS,
        }
        values["example_batch"] = example_batch(values["apps"][0] if values["apps"] else "APP", values["submitter"])
        status = 200 if wrong is None else 422
        title = "Check and submit" if review else "Submit a batch from files"
        return RenderedPage("batch_upload.html", title, "batches", (BATCHES,), values, status=status)


def example_batch(app: str, submitter: str) -> str:
    """Return the example of a batch file, with the submitter that it is charged to, "" if the user has none.

    >>> import tomllib
    >>> found = tomllib.loads(example_batch("dock", 'the "APP" group'))
    >>> found["app"], found["submitter"], found["qos"]
    ('dock', 'the "APP" group', 'throughput')
    >>> "submitter" in example_batch("dock", "")
    False
    """
    charged = f"submitter = {msgspec.json.encode(submitter).decode()}  # charged with the work\n" if submitter else ""
    return f'app = "{app}"\n{charged}{EXAMPLE_BATCH}'


def is_other(named: object, table: str, stored: str) -> bool:
    """Return whether a batch file names another table than the uploaded one, which was stored under another name.

    >>> [is_other(one, "jobs.csv", "jobs_0d.csv") for one in (None, "data/Jobs.CSV", "jobs_0d.csv", "old.csv")]
    [False, False, False, True]
    """
    return isinstance(named, str) and PurePosixPath(named).name.casefold() not in (table.casefold(), stored.casefold())


def _read(path: Path) -> dict[str, object]:
    try:
        return read_batch_file(path)
    except InvalidInputError as error:  # its field is the path
        raise InvalidInputError("batch", error.expected, error.got) from None


def _encoded(values: Table) -> str:
    """Return the batch for the second form. Raises InvalidInputError if browsers could not send it."""
    text = msgspec.json.encode(values).decode()
    nbytes = len(quote_plus(text)) + 2 * text.count("~")  # which browsers encode and quote_plus does not
    if nbytes > MOST_SENT_BYTES:
        most, asked = both_in_words(MOST_SENT_BYTES, nbytes)
        raise InvalidInputError("batch", f"a batch that takes at most {most} in the form that submits it", asked)
    return text


def _decoded(text: str) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInputError("batch", "the batch that was checked", str(error)) from None
    check_shape(values, "batch")
    return values


def named(table: Table, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a table with uploaded input files by name instead of by path.

    >>> named({"jobs": {"inputs": [{"path": "data/a.txt"}]}}, {"a.txt": "a_0d.txt"})
    {'jobs': {'inputs': [{'open_name': 'a.txt', 'name': 'a_0d.txt'}]}}
    """
    made = dict(table)
    for key, value in table.items():
        if isinstance(value, dict):
            made[key] = named(value, names)
        elif isinstance(value, list):
            made[key] = [named(one, names) if isinstance(one, dict) else one for one in value]
    path = made.get("path")
    if not isinstance(path, str) or (base := PurePosixPath(path).name) not in names:
        return made  # has a name already, or is missing: the check reports it
    del made["path"]
    return {"open_name": base, **made, "name": names[base]}


# ---------------------------------------------------------------------- reading the form


async def received(request: web.Request, folder: Path, uploaded: Uploaded) -> None:
    """Write the files of a form to `folder`, within the limits. Raises InvalidInputError."""
    reader, left, number = request.get(PARTS), MOST_BYTES, 0
    wrong: InvalidInputError | None = None
    if reader is None:
        raise InvalidInputError("form", "a form with files (multipart/form-data)", request.content_type)
    try:
        while (part := await reader.next()) is not None:
            number += 1
            if number > MOST_PARTS or not isinstance(part, BodyPartReader):
                raise InvalidInputError("form", f"at most {MOST_PARTS} fields and files", "more")
            name = part.name or ""
            if name not in KINDS:
                uploaded.fields[name] = await _text(part, name)
            elif part.filename:
                file = Path(PureWindowsPath(part.filename).name)  # without folders, of either kind
                file = file.with_suffix(file.suffix.lower())
                wrong = wrong or _wrong_ending(name, file)
                path = folder / (str(number) if wrong else f"{number}{file.suffix[:MOST_SUFFIX]}")
                most = min(left, MOST_BATCH_BYTES) if name == "batch" else left
                uploaded.files.setdefault(name, []).append((file.name, path))
                left -= await _write(part, path, name, most)
            else:
                await part.release()
    except (ValueError, KeyError, LookupError) as error:
        raise InvalidInputError("form", "a form as browsers send it", str(error)) from None
    if wrong is not None:  # after the text fields, which follow the files and are shown again
        raise wrong


def _wrong_ending(name: str, file: Path) -> InvalidInputError | None:
    endings = KINDS[name]
    if not endings or file.suffix in endings:
        return None
    return InvalidInputError(name, f"a file whose name ends in {' or '.join(endings)}", file.name)


async def _text(part: BodyPartReader, name: str) -> str:
    text = b""
    while piece := await part.read_chunk():
        text += piece
        if len(text) > MOST_TEXT_BYTES:
            raise InvalidInputError(name, f"text of at most {MOST_TEXT_BYTES} bytes", "more")
    return text.decode("utf-8", "replace")


async def _write(part: BodyPartReader, path: Path, name: str, most: int) -> int:
    """Write a file and return its size. Raises InvalidInputError above `most` bytes."""
    nbytes = 0
    with path.open("wb") as file:
        while piece := await part.read_chunk(1 << 18):
            nbytes += len(piece)
            if nbytes > most:
                raise InvalidInputError(name, f"at most {size_in_words(most)}", "more")
            await asyncio.to_thread(file.write, piece)
    return nbytes


# ---------------------------------------------------------------------- where an error is


@dataclass(frozen=True, slots=True)
class FileFlaw:
    """An error in the files: where it is (a file, a line and a column, as far as known), and the line's text."""

    error: MusterError
    place: str = ""
    line: str = ""
    column: bool = False


def flaws_of(first: MusterError, uploaded: Uploaded) -> list[FileFlaw]:
    """Return an error and those that were found with it, with their places in the files."""
    found = [first, *first.others] if isinstance(first, InvalidInputError) else [first]
    places = [(one, *place_of(one, uploaded)) for one in found]
    return [FileFlaw(in_form(one, place, uploaded), place, line, ", column " in place) for one, place, line in places]


def in_form(error: MusterError, place: str, uploaded: Uploaded) -> MusterError:
    """Return an error in the form's words: a field of the form, or the table to choose if the form did not bring the
    one that the batch file names.
    """
    if not place:
        return error
    if isinstance(error, InvalidInputError) and error.field == "jobs_csv" and "table" not in uploaded.files:
        return MusterError(f"choose {error.got} under Table of jobs: the batch file names it as jobs_csv")
    return error


ROW = re.compile(r"jobs_csv row (\d+)(?:\.(.*))?$")
COLUMN = "jobs_csv column "  # of the heading
MOST_SHOWN = 200  # characters of a line
HEADING = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?")
KEY = re.compile(r"\s*([\w-]+)\s*=")
# How tomllib and json end the message of a syntax error: tomllib of Python 3.11 has no attribute for the line.
SYNTAX = re.compile(r"\(at line ([0-9]+), column [0-9]+\)$|: line ([0-9]+) column [0-9]+ \(char [0-9]+\)$")


def place_of(error: MusterError, uploaded: Uploaded) -> tuple[str, str]:
    """Return the file, line and column that an error is about, as far as known, and the line's text:
    ("batch.toml, line 7", "count = 0").
    """
    if not isinstance(error, InvalidInputError):
        return "", ""
    with suppress(MusterError, OSError, UnicodeDecodeError, csv.Error):
        table, batch = uploaded.one("table"), uploaded.one("batch")
        if error.field.startswith("jobs_csv") and table is not None:
            found = ROW.match(error.field)
            if error.field.startswith(COLUMN):
                return _placed(*table, _line_of_row(table[1], 0), error.field.removeprefix(COLUMN))
            return _placed(*table, _line_of_row(table[1], int(found[1])) if found else None, found and found[2])
        if batch is not None:
            if error.field == "batch" and (syntax := SYNTAX.search(str(error.got))):
                return _placed(*batch, int(syntax[1] or syntax[2]))
            return _placed(*batch, line_of(batch[1].read_text("utf-8").splitlines(), error.field))
    return "", ""


def _placed(name: str, path: Path, line: int | None, column: str | None = None) -> tuple[str, str]:
    if not line:
        return name, ""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        text = next(islice(file, line - 1, None), "").strip()[:MOST_SHOWN]
    return f"{name}, line {line}{f', column {column}' if column else ''}", text


def _line_of_row(path: Path, number: int) -> int:
    """Return the line of a row, from 1. The heading of a CSV file is row 0, and a cell may have several lines."""
    if path.suffix == ".jsonl":
        return max(1, number)
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader, line, at = csv.reader(file), 1, -1
        for row in reader:
            at += bool(row)
            if at == number:
                return line
            line = reader.line_num + 1
    return line


def line_of(lines: list[str], wanted: str) -> int | None:
    """Return the line of a TOML file, from 1, that sets a field, or else begins its table.

    >>> line_of(["app = 'pi'", "[[job]]", "count = 1", "[[job]]", "", "count = 0"], "job[1].count")
    6
    >>> line_of(["[jobs]", "outputs = [{name = '..'}]"], "jobs.outputs[0].name"), line_of(["a = 1"], "qos")
    (2, None)
    """
    best, found = 0, None
    for number, path in _paths(lines):
        if (wanted == path or wanted.startswith((f"{path}.", f"{path}["))) and len(path) > best:
            best, found = len(path), number
    return found


def _paths(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the number of each line with a heading or a key, and the field that it is about."""
    table, seen = "", dict[str, int]()
    for number, line in enumerate(lines, start=1):
        if heading := HEADING.match(line):
            table = heading[2]
            if heading[1] == "[[":
                seen[table] = seen.get(table, -1) + 1
                table = f"{table}[{seen[table]}]"
            yield number, table
        elif key := KEY.match(line):
            yield number, f"{table}.{key[1]}" if table else key[1]
