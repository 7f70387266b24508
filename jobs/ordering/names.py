"""What are a batch's submitter, account, app and queue called? Limits are given by name. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from domain.catalogue import Catalogue
from domain.limits import Scope
from domain.ordered_work import OrderingView

NamesByScope = Mapping[Scope, Mapping[int, str]]


def names_by_scope(view: OrderingView, catalogue: Catalogue) -> NamesByScope:
    """Names by scope and id."""
    return {
        Scope.SUBMITTER: {member.submitter_id: member.name for member in view.members},
        Scope.ACCOUNT: {account.account_id: account.name for account in view.accounts},
        Scope.APP: {app_id: app.name for app_id, app in catalogue.apps.items()},
    }


def names_of(known: NamesByScope, submitter_id: int, account_id: int, app_id: int, queue: str) -> Mapping[Scope, str]:
    """The names of one batch, "" for what there is no more.

    >>> names_of({Scope.SUBMITTER: {7: "ada"}, Scope.ACCOUNT: {}, Scope.APP: {}}, 7, 1, 1, "normal")[Scope.SUBMITTER]
    'ada'
    """
    ids = {Scope.SUBMITTER: submitter_id, Scope.ACCOUNT: account_id, Scope.APP: app_id}
    return {scope: known[scope].get(number, "") for scope, number in ids.items()} | {Scope.QUEUE: queue}
