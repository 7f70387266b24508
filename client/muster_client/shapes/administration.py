"""Replies about users, settings, shares and the audit trail."""

from __future__ import annotations

from typing import Any, TypedDict

from muster_client.shapes.work import Json


class AccountShown(TypedDict):
    account_id: int
    name: str
    parent: str | None
    shares: float
    permissions: list[str]


class AccountPage(TypedDict):
    accounts: list[AccountShown]
    next_cursor: str | None


class NewAccount(TypedDict):
    account_id: int
    name: str


class AccountStanding(TypedDict):
    account_id: int
    shares: float
    permissions: list[str]


class TreeRowShown(TypedDict):
    """An account below `parent`, a submitter of the account `parent`, or a submitter's membership in `parent`."""

    kind: str
    name: str
    parent: str
    shares: float
    permissions: list[str]


class TreeShown(TypedDict):
    rows: list[TreeRowShown]


class Deleted(TypedDict):
    deleted: str


class SubmitterStanding(TypedDict):
    """`further_accounts`: the submitter's shares in accounts other than its own, by account name."""

    submitter_id: int
    shares: float
    further_accounts: dict[str, float]
    permissions: list[str]


class SubmitterShown(TypedDict):
    submitter_id: int
    name: str
    account: str
    shares: float
    logical_at: float
    permissions: list[str]


class SubmitterPage(TypedDict):
    submitters: list[SubmitterShown]
    next_cursor: str | None


class NewSubmitter(TypedDict):
    submitter_id: int
    name: str


class NewVolunteer(TypedDict):
    """`authenticator` is the account key, shown only once."""

    volunteer_id: int
    authenticator: str


class VolunteerShown(TypedDict):
    volunteer_id: int
    email: str
    name: str
    created_at: float
    beta: bool
    no_cpu: bool
    no_gpu: bool
    max_jobs: int
    max_cpus: int
    apps: list[str]


class VolunteerPage(TypedDict):
    volunteers: list[VolunteerShown]
    next_cursor: str | None


class SettingShown(TypedDict):
    """A setting. `changed`: its value differs from the default."""

    key: str
    value: Any
    default: Any
    changed: bool
    meaning: str


class SettingsShown(TypedDict):
    """The values of all settings by key, and the details of each setting."""

    settings: dict[str, Any]
    details: list[SettingShown]


class SettingSet(TypedDict):
    key: str
    value: Any


SettingChangeShown = TypedDict(
    "SettingChangeShown", {"changed_at": float, "key": str, "from": Any, "to": Any, "by": str, "why": str}
)
ChangeMade = TypedDict("ChangeMade", {"key": str, "from": Any, "to": Any, "by": str, "why": str})


class SettingChangePage(TypedDict):
    changes: list[SettingChangeShown]
    next_cursor: str | None


class Changed(TypedDict):
    changed: list[ChangeMade]


class TableShown(TypedDict):
    columns: list[str]
    rows: list[list[Any]]


class GrantShown(TypedDict):
    account: str
    granted_su: float
    used_su: float
    reserved_su: float
    left_su: float
    period_start_at: float
    period_s: float


class GrantPage(TypedDict):
    grants: list[GrantShown]
    next_cursor: str | None


class GrantTaken(TypedDict):
    account: str
    granted_su: None


class LimitShown(TypedDict):
    """A limit. `name` None: it is the default for names that have no limit of their own."""

    scope: str
    quantity: str
    name: str | None
    soft: float | None
    hard: float | None
    counts: str


class LimitLifted(TypedDict):
    scope: str
    quantity: str
    name: str | None
    dropped: bool


class LimitPage(TypedDict):
    limits: list[LimitShown]
    next_cursor: str | None


class PersonShown(TypedDict):
    """A user: operator, submitter or viewer. `one_time_until` is when the one-time password expires."""

    name: str
    role: str
    submitter_id: int | None
    active: bool
    created_at: float
    one_time_until: float | None


class PersonPage(TypedDict):
    people: list[PersonShown]
    next_cursor: str | None


class InvitedShown(TypedDict):
    """`password` is shown only once and must be changed at the first sign-in."""

    person: PersonShown
    password: str
    until: float


class WhoShown(TypedDict):
    """The caller, and the scopes of the request."""

    name: str
    role: str
    scopes: list[str]
    submitter_id: int | None
    must_change_password: bool
    signed_in_with: str


class TokenShown(TypedDict):
    token_id: int
    name: str
    person_id: int
    person: str
    scopes: list[str]
    created_at: float
    expires_at: float | None
    last_used_at: float | None
    revoked_at: float | None


class TokenPage(TypedDict):
    tokens: list[TokenShown]
    next_cursor: str | None


class NewTokenShown(TypedDict):
    """`value` is the token, shown only once. `waits_because`: what must happen before it becomes valid, if anything."""

    value: str
    token: TokenShown
    waits_because: str | None


class ActShown(TypedDict):
    """An entry of the audit trail. `what` is the operation performed."""

    acted_at: float
    who: str
    what: str
    target: str
    detail: Json
    address: str


class ActPage(TypedDict):
    acts: list[ActShown]
    next_cursor: str | None


class FoundVolunteer(TypedDict):
    """A volunteer in a search. `last_rpc_at`: the last request of one of the hosts."""

    volunteer_id: int
    email: str
    name: str
    created_at: float
    hosts: int
    last_rpc_at: float | None
    credit: float


class FoundVolunteerPage(TypedDict):
    volunteers: list[FoundVolunteer]
    next_cursor: str | None


class RestrictionShown(TypedDict):
    """A ban or limit of a volunteer or host, or a pause of an app, a queue or a batch. `max_jobs` 0: a ban, or paused.

    `name`: the id, or the name of an app or queue. `abort`: the ban also ended the jobs in progress.
    `set_at`: since when this maximum applies. `why` and `set_by`: the latest reason and its author, which may be newer.
    """

    kind: str
    name: str
    max_jobs: int
    why: str
    set_by: str
    set_at: float
    abort: bool


class RestrictionPage(TypedDict):
    restrictions: list[RestrictionShown]
    next_cursor: str | None


class RestrictionLifted(TypedDict):
    kind: str
    name: str
    lifted: bool


class SessionsEnded(TypedDict):
    ended: int


class AttentionItemShown(TypedDict):
    """Something that an operator should look at. `severe`: users are affected now. `link`: page below the console about
    the subject; `why`: the page that explains it, or "".

    `since_at`: when it began, null if unknown. `figures`: the numbers of the sentence. `batch_id`: null if it is not
    about a batch.
    """

    kind: str
    severe: bool
    subject: str
    link: str
    why: str
    sentence: str
    remedy: str
    since_at: float | None
    figures: dict[str, float]
    batch_id: int | None


class AttentionShown(TypedDict):
    """What needs attention, worst first, and the number of items of each kind. `left_out` batches that are late,
    failing or of an app without a version are not listed.
    """

    computed_at: float
    counts: dict[str, int]
    left_out: int
    items: list[AttentionItemShown]


class SubscriptionShown(TypedDict):
    """A subscription to notifications. `confirmed_at` None: the owner of the e-mail address has not agreed yet."""

    subscription_id: int
    person: str
    channel: str
    address: str
    kinds: list[str]
    project_wide: bool
    interval_s: float
    created_at: float
    confirmed_at: float | None
    paused: bool


class SubscriptionPage(TypedDict):
    subscriptions: list[SubscriptionShown]
    next_cursor: str | None


class NewSubscriptionShown(TypedDict):
    """`secret` signs the messages to a webhook and is shown only once; None for e-mail."""

    subscription: SubscriptionShown
    secret: str | None


class DeliveryShown(TypedDict):
    """A message to a subscription: `waiting`, `sent` or `failed`. `outcome` describes the last attempt."""

    delivery_id: int
    key: str
    subscription_id: int
    channel: str
    address: str
    made_at: float
    state: str
    attempts: int
    next_at: float
    ended_at: float | None
    outcome: str
    events: int
    dropped: int


class DeliveryPage(TypedDict):
    deliveries: list[DeliveryShown]
    next_cursor: str | None
