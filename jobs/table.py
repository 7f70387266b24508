"""Jobs of a table, one per row: columns that name fields and files, and `{column}` in texts. Pure.

A column is a field of a job, `input.OPEN_NAME` (the name of a file on the server), `output.NAME` (its maximum size),
`validator.kind` or `validator.tolerance`, or a value for `{column}` in a text of the row or of `[jobs]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from domain.errors import InvalidInputError
from domain.jobs import JobClass
from domain.settings import FileSettings
from domain.submission import MAX_JOBS
from jobs.fields import Fields, number_of
from jobs.flaws import MOST_FLAWS
from jobs.requirements import JOB_FIELDS, JobSpec, parse_class, parse_command_line, parse_count, parse_inputs

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
ROW = "jobs_csv row "  # and its number: where an error is
NUMBER = "i"  # {i} is the job's number in its batch: `numbered` in jobs/spec.py

Row = Mapping[str, Any]  # Any: content of a user's file
Rows = Callable[[], Iterable[Row]]

_OWN_FIELDS = ("command_line", "count", "inputs")  # in which jobs of one class differ
MOST_FURTHER_ROWS = 1000  # searched for errors after the first
_MOST_KINDS = 10_000  # remembered while a table is read
_DOTTED = {"inputs": "input", "outputs": "output", "validator": "validator"}  # field: its columns' prefix


def placeholders(value: object) -> set[str]:
    """Return the names in braces in all texts of a value.

    >>> sorted(placeholders({"command_line": "--n {n}", "inputs": [{"path": "data/{sample}.csv"}]}))
    ['n', 'sample']
    """
    if isinstance(value, str):
        return set(PLACEHOLDER.findall(value)) if "{" in value else set()
    if isinstance(value, Mapping):
        value = list(value.values())
    return set().union(*map(placeholders, value)) if isinstance(value, list) else set()


def filled(value: Any, cells: Mapping[str, str]) -> Any:
    """Return a value with `{column}` replaced in all texts; other names in braces stay.

    >>> filled(["{a}-{b}", {"x": "{a}"}, 3], {"a": "1"})
    ['1-{b}', {'x': '1'}, 3]
    """
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: cells.get(found[1], found[0]), value) if "{" in value else value
    if isinstance(value, Mapping):
        return {name: filled(one, cells) for name, one in value.items()}
    return [filled(one, cells) for one in value] if isinstance(value, list) else value


def cells_of(row: Row) -> dict[str, str]:
    """Return the values of a row that `{column}` can stand for, as text."""
    known = {name: value for name, value in row.items() if name != NUMBER}
    return {name: str(value) for name, value in known.items() if isinstance(value, (str, int, float))}


@dataclass(frozen=True, slots=True)
class TableJobs:
    """The jobs of a table, read again at each iteration. `defaults` is [jobs].

    An error in a row has those of the next MOST_FURTHER_ROWS rows, of each row the first.
    """

    rows: Rows
    defaults: Mapping[str, object]
    files: FileSettings

    def __iter__(self) -> Iterator[JobSpec]:
        parse = self._parser()
        rows = enumerate(self.rows(), start=1)
        for number, row in rows:
            try:
                job = parse(number, row)
            except InvalidInputError as error:
                further = islice(rows, min(MOST_FURTHER_ROWS, max(0, MAX_JOBS - number)))
                error.others = tuple(islice(_errors_after(error, further, parse), MOST_FLAWS - 1))
                raise
            yield job

    def _parser(self) -> Callable[[int, Row], JobSpec]:
        """Return the function that parses a row by its number, from 1; it raises InvalidInputError."""
        used = placeholders(self.defaults) - {NUMBER}
        outputs_vary = bool(used & placeholders(self.defaults.get("outputs")))
        shared = Fields(self.defaults, known=JOB_FIELDS, where="jobs")
        varying = [place for place, one in enumerate(shared.tables("inputs")) if used & placeholders(dict(one))]
        common = None if varying else parse_inputs(Fields({}, known=(), where="jobs"), shared)
        classes: dict[str, JobClass] = {}  # most rows differ only in the command line

        def parse(number: int, row: Row) -> JobSpec:
            cells = cells_of(row)
            if used:  # first: a misspelt name in braces also leaves its column unused
                self._check_names(used, row, cells, number)
            own = _own_fields(row, cells, used, f"{ROW}{number}")
            rest = Fields(filled(self.defaults, cells), known=JOB_FIELDS, where="jobs") if used else shared
            kind = own.text_without(_OWN_FIELDS) + (repr(rest.tables("outputs")) if outputs_vary else "")
            job_class = classes.get(kind)
            if job_class is None:
                job_class = parse_class(own, rest, self.files)
                if len(classes) < _MOST_KINDS:
                    classes[kind] = job_class
            inputs = common if common is not None and not own.has("inputs") else parse_inputs(own, rest, varying)
            command_line = parse_command_line(own if own.has("command_line") else rest)
            return JobSpec(parse_count(own), command_line, job_class, *inputs)

        return parse

    def _check_names(self, used: set[str], row: Row, cells: Mapping[str, str], number: int) -> None:
        """Raise InvalidInputError if a text of [jobs] names a column that the row does not have."""
        for name in sorted(used - cells.keys()):
            columns = ", ".join(cells) or "none"
            if number == 1 and name not in row:
                expected = f"only {{i}} and columns of the table ({columns}) in braces"
                raise InvalidInputError(_text_with(name, self.defaults, "jobs"), expected, f"{{{name}}}")
            expected = f"a column named in [jobs] as {{{name}}}; the columns are {columns}"
            raise InvalidInputError(f"jobs_csv row {number}.{name}", expected, None)


def _errors_after(
    last: InvalidInputError, rows: Iterable[tuple[int, Row]], parse: Callable[[int, Row], JobSpec]
) -> Iterator[InvalidInputError]:
    """Yield the errors of rows after an error, until each row would repeat one."""
    try:
        for number, row in rows if last.field.startswith(ROW) else ():
            try:
                parse(number, row)
            except InvalidInputError as error:
                if error.got is last.got is None and error.field.partition(".")[2] == last.field.partition(".")[2]:
                    return  # a missing column
                yield error
                if not error.field.startswith(ROW):
                    return
                last = error
    except InvalidInputError as unread:
        yield unread


def _own_fields(row: Row, cells: Mapping[str, str], used: set[str], where: str) -> Fields:
    """Return the fields of a job that a row gives. Raises InvalidInputError for a column without a use."""
    table = {name: value for name, value in row.items() if name in JOB_FIELDS}
    spare = row.keys() - table.keys()
    for field, added in _with_dots({name: row[name] for name in row if name in spare}).items():
        spare -= {name for name in spare if name.startswith(f"{_DOTTED[field]}.")}
        if added and table.get(field):
            raise InvalidInputError(f"{where}.{field}", "a field or columns with a dot, not both", "both")
        if added:
            table[field] = added
    unused = spare - used
    for name in sorted(unused - placeholders(table)) if unused else ():
        expected = (
            f"a column that jobs use: named as {{{name}}} in a text such as the command line, input.OPEN_NAME, "
            f"output.NAME, or a field of a job ({', '.join(sorted(JOB_FIELDS))})"
        )
        raise InvalidInputError(_column(where, name), expected, name)
    return Fields(filled(table, cells), known=JOB_FIELDS, where=where, from_text=True)


def _with_dots(row: Row) -> dict[str, Any]:
    """Return the fields that columns with a dot give; an empty cell gives nothing.

    >>> _with_dots({"input.in": "a.txt", "output.out": "1000", "validator.kind": "", "other.x": "1"})
    {'inputs': [{'open_name': 'in', 'name': 'a.txt'}], 'outputs': [{'name': 'out', 'max_bytes': 1000}], 'validator': {}}
    """

    def of(field: str) -> dict[str, Any]:
        cells = ((name.partition("."), value) for name, value in row.items() if value not in ("", None))
        return {rest: value for (kind, _, rest), value in cells if kind == _DOTTED[field] and rest}

    return {
        "inputs": [{"open_name": name, "name": value} for name, value in of("inputs").items()],
        "outputs": [{"name": name, "max_bytes": number_of(value)} for name, value in of("outputs").items()],
        "validator": {
            name: number_of(value) if name == "tolerance" else value for name, value in of("validator").items()
        },
    }


def _text_with(name: str, value: object, where: str) -> str:
    """Return the field of the first text with a name in braces.

    >>> _text_with("n", {"command_line": "{m}", "inputs": [{"name": "a"}, {"name": "{n}.csv"}]}, "jobs")
    'jobs.inputs[1].name'
    """
    if isinstance(value, Mapping):
        parts = [(f"{where}.{key}", one) for key, one in value.items()]
    elif isinstance(value, list):
        parts = [(f"{where}[{place}]", one) for place, one in enumerate(value)]
    else:
        return where
    return next(_text_with(name, one, field) for field, one in parts if name in placeholders(one))


def _column(where: str, name: str) -> str:
    """Return the field of a column without a use: that of the heading if the first row shows it."""
    return f"jobs_csv column {name}" if where == "jobs_csv row 1" else f"{where}.{name}"
