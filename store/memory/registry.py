"""Stores data that rarely change: people, apps, files and settings, by id and by unique name."""

from __future__ import annotations

from dataclasses import dataclass

from domain.acceleration import Acceleration
from domain.apps import App, AppVersion, PlanClass, ProcessorType
from domain.batches import Account, Submitter
from domain.errors import NotFoundError
from domain.host_classes import HostClasses
from domain.ranking import CutPoints, RelaxedGate
from domain.reservations import Kept, Lease
from domain.restrictions import Restricted, Restriction
from domain.settings import Settings
from domain.units import AccountId, AppId, AppVersionId, HostId, Instant, SubmitterId, VolunteerId
from domain.views import SettingChange
from domain.volunteers import VolunteerRecord


@dataclass(frozen=True, slots=True)
class RegisteredFile:
    """A file that clients may download. The content behind a name never changes."""

    name: str
    nbytes: int
    md5: str
    signature: str = ""


class Registry:
    """The tables with the initial rows of a new database: the default account, submitter and plan class."""

    def __init__(self) -> None:
        account = Account(AccountId(1), "default")
        submitter = Submitter(SubmitterId(1), "default", account.account_id)
        self.accounts: dict[AccountId, Account] = {account.account_id: account}
        self.account_ids: dict[str, AccountId] = {account.name: account.account_id}
        self.submitters: dict[SubmitterId, Submitter] = {submitter.submitter_id: submitter}
        self.submitter_ids: dict[str, SubmitterId] = {submitter.name: submitter.submitter_id}
        self.memberships: dict[SubmitterId, dict[AccountId, float]] = {}  # shares in additional accounts
        self.last_submission_at: dict[SubmitterId, Instant] = {}
        self.volunteers: dict[VolunteerId, VolunteerRecord] = {}
        self.volunteer_ids_by_email: dict[str, VolunteerId] = {}
        self.volunteer_ids_by_hash: dict[bytes, VolunteerId] = {}
        self.apps: dict[AppId, App] = {}
        self.app_ids: dict[str, AppId] = {}
        self.plan_classes: dict[str, PlanClass] = {"": PlanClass("")}
        self.files: dict[str, RegisteredFile] = {}
        self.versions: dict[AppVersionId, AppVersion] = {}
        self.changed_settings: dict[str, object] = {}
        self.setting_changes: list[SettingChange] = []
        self.duty_done_at: dict[str, Instant] = {}
        self.settings = Settings()  # as of the last loaded catalogue
        self.cut_points: dict[tuple[AppId, ProcessorType], CutPoints] = {}  # from the last published generation
        self.relaxed_gates: tuple[RelaxedGate, ...] = ()
        self.acceleration: Acceleration | None = None
        self.kept: tuple[Kept, ...] = ()
        self.leases: dict[HostId, Lease] = {}
        self.host_classes = HostClasses()
        self.restrictions: dict[tuple[Restricted, str], Restriction] = {}

    def account(self, name: str) -> Account:
        if name not in self.account_ids:
            raise NotFoundError("account", name)
        return self.accounts[self.account_ids[name]]

    def submitter(self, name: str) -> Submitter:
        if name not in self.submitter_ids:
            raise NotFoundError("submitter", name)
        return self.submitters[self.submitter_ids[name]]

    def app(self, name: str) -> App:
        if name not in self.app_ids:
            raise NotFoundError("app", name)
        return self.apps[self.app_ids[name]]
