"""Fair-share: users below their share rank higher."""

from __future__ import annotations

import pytest

from domain.batches import Account
from domain.errors import InvalidInputError
from domain.units import AccountId, SubmitterId
from priority.fair_share import FairShares, Leaf, fair_shares

ROOT, LAB, DESK = AccountId(1), AccountId(2), AccountId(3)
TREE = [Account(ROOT, "root"), Account(LAB, "lab", ROOT, 3.0), Account(DESK, "services", ROOT, 1.0)]


def leaf(submitter: int, account: AccountId, usage: float, shares: float = 1.0) -> Leaf:
    return Leaf(SubmitterId(submitter), account, shares, usage)


def of(shares: FairShares, submitter: int) -> tuple[float, float | None]:
    [found] = [share for (submitter_id, _), share in shares.leaves.items() if submitter_id == submitter]
    return found.ratio, found.rank


def test_a_single_user_on_target_stands_at_a_half() -> None:
    assert of(fair_shares(TREE, [leaf(1, LAB, 75.0), leaf(2, DESK, 25.0)]), 1)[0] == 0.5


def test_users_of_better_accounts_rank_above_all_others() -> None:
    shares = fair_shares(TREE, [leaf(1, LAB, 10.0), leaf(2, LAB, 9.0), leaf(3, DESK, 9.0), leaf(4, DESK, 0.0)])

    assert [of(shares, number)[1] for number in (2, 1, 4, 3)] == [1.0, 0.75, 0.5, 0.25]


def test_without_shares_a_user_is_last_even_without_usage() -> None:
    shares = fair_shares(TREE, [leaf(1, LAB, 0.0, shares=0.0), leaf(2, LAB, 50.0)])

    assert of(shares, 1) == (0.0, 0.5)


def test_without_usage_no_user_is_over_served() -> None:
    shares = fair_shares(TREE, [leaf(1, LAB, 0.0), leaf(2, DESK, 0.0)])

    assert (of(shares, 1)[0], of(shares, 2)[0]) == (1.0, 1.0)


def test_accounts_without_submitters_take_no_share() -> None:
    assert fair_shares(TREE, [leaf(1, LAB, 5.0)]).accounts.keys() == {ROOT, LAB}


def test_one_submitter_in_two_accounts_is_two_leaves() -> None:
    assert len(fair_shares(TREE, [leaf(1, LAB, 5.0), leaf(1, DESK, 5.0)]).leaves) == 2


@pytest.mark.parametrize(
    ("accounts", "leaves", "field"),
    [
        (TREE, [leaf(1, AccountId(9), 1.0)], "submitter.account_id"),
        (TREE, [leaf(1, LAB, float("nan"))], "submitter.usage"),
        (TREE, [leaf(1, LAB, 1.0, shares=-1.0)], "submitter.shares"),
        ([Account(LAB, "lab", DESK), Account(DESK, "services", LAB)], [], "account.parent_id"),
        ([Account(LAB, "lab", DESK)], [], "account.parent_id"),
        ([Account(LAB, "lab", None, float("inf"))], [], "account.shares"),
    ],
)
def test_what_is_no_tree_is_refused_by_name(accounts: list[Account], leaves: list[Leaf], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        fair_shares(accounts, leaves)
    assert caught.value.field == field


def test_no_submitters_is_an_empty_answer() -> None:
    assert fair_shares(TREE, []).leaves == {}


def test_a_very_deep_tree_is_no_trouble() -> None:
    chain = [Account(AccountId(1), "1")]
    chain += [Account(AccountId(n), str(n), AccountId(n - 1)) for n in range(2, 400)]

    assert of(fair_shares(chain, [leaf(1, AccountId(399), 5.0)]), 1) == (0.5, 1.0)
