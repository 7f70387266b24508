"""Converts between values and database rows: people, apps, batches and their order, hosts, jobs, instances. Pure.

A row, as returned by asyncpg, maps columns to values whose types are known only to the query.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from domain.apps import App, AppFile, AppVersion, PlanClass, VersionState
from domain.batches import Account, Batch, BatchCounts, Submitter
from domain.credit import NO_CREDIT, Credit
from domain.dispatch import Reported, SentJob, Upload
from domain.due_terms import DueTerms
from domain.hosts import Coprocessor, DecayedSums, Host, HostAppVersion
from domain.jobs import Candidate, Input, InstanceInProgress, JobClass, Output, Ready, instance_name
from domain.limits import Limit, Quantity
from domain.ordered_work import (
    Grant,
    LeafId,
    LeafStanding,
    LeafUsage,
    Member,
    OrderedBatch,
    OrderNotes,
    Reference,
    WindowUsage,
)
from domain.ordering import PlaceInOrder, QueueClock, Request
from domain.ranking import CutPoints
from domain.settlement import InstanceFacts, JobFacts, TailInstance, TailJob
from domain.units import Instant, Seconds
from domain.usage import Amounts, DecayedUsage, UsageRow
from domain.views import InstanceRow, JobRow, Returned, SettingChange
from domain.volunteers import Credentials, Volunteer, VolunteerRecord


class Row(Protocol):
    """A row returned by asyncpg."""

    def __getitem__(self, column: str, /) -> Any:  # Any: only the query knows
        ...


Value = TypeVar("Value")


def mapper(
    cls: Callable[..., Value], *, left_out: Collection[str] = (), **sources: str | Callable[[Row], object]
) -> Callable[..., Value]:
    """Return a function that creates a `cls` value from a row, each field from the column of the same name.

    `sources` maps a field to another column or to a function of the row. Strings become members of the field's enum,
    and arrays become tuples. `left_out` names fields that are passed after the row, in this order; the last of them may
    keep their defaults.

    >>> mapper(Upload, md5="digest")({"name": "out", "digest": "0d", "nbytes": 3})
    Upload(name='out', nbytes=3, md5='0d')
    """
    every = dataclasses.fields(cls)  # type: ignore[arg-type]
    fields = [field for field in every if field.name not in left_out]
    places = [place for place, field in enumerate(every) if field.name in left_out]
    hints = get_type_hints(cls)
    columns, computed, converted = list[str](), list[tuple[int, Any]](), list[tuple[int, Any]]()
    for place, field in enumerate(fields):
        source = sources.get(field.name, field.name)
        if not isinstance(source, str):
            computed.append((place, source))
            continue
        columns.append(source)
        if (conversion := _conversion(hints[field.name])) is not None:
            converted.append((place, conversion))
    read = itemgetter(*columns) if len(columns) > 1 else lambda row: [row[column] for column in columns]

    def made(row: Row, *rest: object) -> Value:
        values = [*read(row)]
        for place, function in computed:
            values.insert(place, function(row))
        for place, conversion in converted:
            values[place] = conversion(values[place])
        for place, value in zip(places, rest, strict=False):
            values.insert(place, value)
        return cls(*values)

    return made


def _conversion(hint: Any) -> Callable[[Any], object] | None:
    """Return the conversion of a column's value to this type, None if none is needed."""
    if get_origin(hint) is tuple:
        return tuple
    optional = [one for one in get_args(hint) if isinstance(one, type) and issubclass(one, Enum)]
    if optional:
        return lambda value: None if value is None else optional[0](value)
    return hint if isinstance(hint, type) and issubclass(hint, Enum) else None


def values_of(names: str, **computed: Callable[[Any], object]) -> Callable[[Any], tuple[object, ...]]:
    """Return a function that creates a query's arguments from a value's attributes `names`, in this order.

    `computed` has functions that compute arguments from the value.

    >>> values_of("md5 nbytes bits", bits=lambda upload: upload.nbytes * 8)(Upload("out", 3, "0d"))
    ('0d', 3, 24)
    """
    readers = _readers(names, computed)
    return lambda value: tuple([read(value) for read in readers])


def columns_of(names: str, **computed: Callable[[Any], object]) -> Callable[[Collection[Any]], list[list[object]]]:
    """Return a function that creates a query's array arguments from values, one array per name. See `values_of`.

    >>> columns_of("name nbytes")([Upload("a", 1, ""), Upload("b", 2, "")])
    [['a', 'b'], [1, 2]]
    """
    readers = _readers(names, computed)
    return lambda values: [list(map(read, values)) for read in readers]


def _readers(names: str, computed: Mapping[str, Callable[[Any], object]]) -> list[Callable[[Any], object]]:
    return [computed.get(name) or attrgetter(name) for name in names.split()]


def or_empty(column: str) -> Callable[[Row], str]:
    """Return a function that reads a text column, with an empty string for null."""
    return lambda row: row[column] or ""


def credit(row: Row | None) -> Credit:
    """Return the credit in a row of its table, zero for None."""
    return NO_CREDIT if row is None else _credit(row)


def credit_of(row: Row) -> Credit:
    """Return the credit in a row's column, zero for null."""
    return credit(row["credit"])


_credit = mapper(Credit)
account = mapper(Account)
submitter = mapper(Submitter)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _volunteer(prefix: str = "") -> Callable[[Row], Volunteer]:
    """Return a function that reads a volunteer. `prefix` precedes column names that would clash in a join."""
    sources: dict[str, Any] = {field.name: prefix + field.name for field in dataclasses.fields(Volunteer)}
    sources["apps"] = f"{prefix}app_ids"
    sources["email_hash"] = lambda row: _md5(row[f"{prefix}email"])
    sources["external_cpid"] = lambda row: _md5(row[f"{prefix}cross_project_id"] + row[f"{prefix}email"])
    return mapper(Volunteer, **sources)


volunteer = _volunteer()
asking_volunteer = _volunteer("v_")
volunteer_record = mapper(VolunteerRecord, volunteer=volunteer, credentials=mapper(Credentials))


app = mapper(App)


# the changeable columns of an app, in the order of update_app and insert_app
app_settings = values_of("user_friendly_name beta deprecated adaptive_copies one_per_host one_per_volunteer")


plan_class = mapper(PlanClass)
app_file = mapper(AppFile)


_STATES = {"leave": VersionState.WITHDRAWN, "abort": VersionState.ABORTED}  # by app_version.withdrawn


def _version_state(row: Row) -> VersionState:
    return _STATES.get(row["withdrawn"], VersionState.DEPRECATED if row["deprecated"] else VersionState.OFFERED)


def version_state(state: VersionState) -> tuple[bool, str | None]:
    """Return the columns `deprecated` and `withdrawn` of a state."""
    return state is not VersionState.OFFERED, next((text for text, one in _STATES.items() if one is state), None)


app_version = mapper(AppVersion, state=_version_state, left_out=["plan_class", "files"])
cut_points = mapper(CutPoints, left_out=["relaxed"])
batch = mapper(Batch, counts=mapper(BatchCounts))  # a row of batch_with_counts
host = mapper(Host, coprocessors=lambda row: msgspec.json.decode(row["coprocessors"], type=tuple[Coprocessor, ...]))


def _sums(of: str) -> Callable[[Row], DecayedSums]:
    return mapper(DecayedSums, n=f"{of}_n", total=f"{of}_sum", total_sq=f"{of}_sum_sq", at="stats_at")


host_app_version = mapper(
    HostAppVersion,
    speed=_sums("speed"),
    tight=_sums("tight"),
    relaxed=_sums("relaxed"),
)
setting_change = mapper(
    SettingChange,
    from_value=lambda row: decoded(row["from_value"]),
    to_value=lambda row: decoded(row["to_value"]),
    change_id="audit_id",
)


def encoded(value: object) -> str:
    """Return `value` as JSON text, for a jsonb column.

    >>> encoded((1.5, "a"))
    '[1.5,"a"]'
    """
    return msgspec.json.encode(value).decode()


def decoded(text: str | None) -> object:
    """Return the value of a jsonb column, None for null.

    >>> decoded('"fifo"'), decoded(None)
    ('fifo', None)
    """
    return None if text is None else msgspec.json.decode(text)


def due_terms(text: str | None) -> DueTerms | None:
    return None if text is None else msgspec.json.decode(text, type=DueTerms)


def decoded_object(text: str) -> dict[str, object]:
    """Return the object in a jsonb column.

    >>> decoded_object('{"tier": 0}')
    {'tier': 0}
    """
    return msgspec.json.decode(text, type=dict[str, object])


job_class = mapper(
    JobClass, inputs=lambda row: inputs(row["inputs"]) or (), outputs=lambda row: outputs(row["outputs"])
)


def inputs(text: str | None) -> tuple[Input, ...] | None:
    """Return the files in an inputs column, None for null."""
    return None if text is None else msgspec.json.decode(text, type=tuple[Input, ...])


def outputs(text: str) -> tuple[Output, ...]:
    return msgspec.json.decode(text, type=tuple[Output, ...])


def uploads(text: str | None) -> tuple[Upload, ...]:
    """Return the uploads that a query aggregated, empty for null."""
    return () if text is None else msgspec.json.decode(text, type=tuple[Upload, ...])


def _name(row: Row) -> str:
    return instance_name(row["app_name"], row["batch_id"], row["job_id"], row["instance_id"])


held = mapper(InstanceInProgress, name=_name)  # `app_name` and `no_longer_needed` are columns of the row
sent_job = mapper(SentJob, inputs=lambda row: inputs(row["inputs"]))
candidate = mapper(Candidate, ready=mapper(Ready))


def _uploads(row: Row) -> tuple[Upload, ...]:
    return uploads(row["uploads"])


instance_facts = mapper(InstanceFacts, name=_name, uploads=_uploads)
instance_row = mapper(
    InstanceRow,
    reason=or_empty("reason"),
    due_terms=lambda row: due_terms(row["due_terms"]),
    stderr=or_empty("stderr"),
    uploads=_uploads,
)
job_row = mapper(
    JobRow,
    failure=or_empty("failure"),
    inputs=lambda row: inputs(row["inputs"]) or (),
    left_out=["instances"],
)
returned = mapper(Returned, uploads=_uploads)


reported = mapper(Reported, held=held, outputs=lambda row: outputs(row["outputs"]), uploads=_uploads)


job_facts = mapper(JobFacts, left_out=["job_class", "instances"])
tail_job = mapper(TailJob, left_out=["job_class", "instances"])
tail_instance = mapper(
    TailInstance,
    sent_at=lambda row: row["sent_at"] or Instant(0.0),
    est_runtime_s=lambda row: row["est_runtime_s"] or Seconds(0.0),
)


_notes = mapper(
    OrderNotes,
    clock=mapper(QueueClock, accrued_s="noted_waited_s", since="noted_waiting_since"),
    bypassed="noted_bypassed",
    sent="noted_sent",
    charged="noted_charged",
    used="noted_used",
    charged_at="noted_charged_at",
    used_fraction="noted_used_fraction",
    sampled="noted_sampled",
    rate="noted_rate",
)
ordered_batch = mapper(  # a row of batches_to_order or of ended_batch_to_correct
    OrderedBatch,
    batch=batch,
    request=mapper(Request, left_out=["gpus"]),
    notes=lambda row: None if row["noted_sent"] is None else _notes(row),
    awaited=lambda row: tuple(row["awaited"] or ()),
    unmet=lambda row: tuple(row["unmet"] or ()),
)


def _leaf(row: Row) -> LeafId:
    return row["submitter_id"], row["account_id"]


member = mapper(Member)
leaf_usage = mapper(LeafUsage, leaf=_leaf, usage=mapper(DecayedUsage, amounts=mapper(Amounts)))
window_usage = mapper(WindowUsage, leaf=_leaf)
grant = mapper(Grant)
place = mapper(PlaceInOrder, of="active")
limit = mapper(Limit, quantity=lambda row: Quantity[row["quantity"].upper()], name=lambda row: row["name"] or None)


# the arrays of sql/ordering.sql: write_batch_orders (after the batch ids), write_usage and so on
notes_columns = columns_of(
    "clock.accrued_s clock.since bypassed sent charged used charged_at used_fraction sampled rate"
)
_LEAF = {"submitter_id": lambda one: one.leaf[0], "account_id": lambda one: one.leaf[1]}
usage_columns = columns_of(
    "submitter_id account_id usage.amounts.flop usage.amounts.cpu_s usage.amounts.memory_byte_s usage.amounts.gpu_s"
    " usage.at accuracies",
    accuracies=lambda one: encoded(one.accuracies),
    **_LEAF,
)
window_columns = columns_of("submitter_id account_id level starts_at length_s flop", **_LEAF)
history_columns = columns_of(
    "submitter_id account_id instances used.flop used.cpu_s used.memory_byte_s used.gpu_s used_su", **_LEAF
)
usage_row = mapper(UsageRow)
place_columns = columns_of("batch_id tier key hold sent_most unpaid job_pe level")
grant_columns = columns_of("account_id period_start_at used_su reserved_su")
correction_columns = columns_of("batch_id submitter_id charged_s due_s")


def quantity_word(quantity: Quantity) -> str:
    """Return the name of a quantity in the database and in commands.

    >>> quantity_word(Quantity.JOB_PE)
    'job_pe'
    """
    return quantity.name.lower()


def standing(text: str | None) -> LeafStanding | None:
    return None if text is None else msgspec.json.decode(text, type=LeafStanding)


def reference(text: str | None) -> Reference | None:
    return None if text is None else msgspec.json.decode(text, type=Reference)
