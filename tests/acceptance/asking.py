"""Sends valid and invalid requests to every operation of the API, with every kind of token."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from domain.access import Right

ENDLESS = ("batch_events", "events")  # streams
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
LONGEST = 8000  # longer request lines are refused before they reach the API
SCOPE = re.compile(r"Needs the scope `(\w+)`")


@dataclass(frozen=True, slots=True)
class Requester:
    """A caller, with or without a token. `status`: the status of all its replies, if they are all the same.

    `scopes`: the token's scopes. `never`: operations that must fail despite the scope.
    """

    name: str
    token: str | None
    scopes: frozenset[Right] = frozenset()
    status: int | None = None
    never: frozenset[str] = frozenset()

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def check(self, operation: Mapping[str, Any], status: int) -> None:
        """Raise AssertionError if the operation may not return this status."""
        [scope] = SCOPE.findall(operation["description"])
        if self.status is not None:
            assert status == self.status, f"{self.name} got status {status} instead of {self.status}"
        elif Right(scope) not in self.scopes:
            assert status == 403, f"{self.name} has no scope {scope} and got status {status}"
        elif operation["operationId"] in self.never:
            assert status >= 400, f"{self.name} got status {status} from an operation that must fail"


@dataclass(slots=True)
class Questions:
    """An OpenAPI document and its server's URL. `known` are path parameters of existing objects.

    Each operation gets `examples` requests, the same in every run if `repeatable`. `asked` counts requests.
    """

    document: Mapping[str, Any]
    url: str
    examples: int
    known: Mapping[str, dict[str, Any]]  # by path
    repeatable: bool
    asked: int = 0
    _session: requests.Session = field(default_factory=requests.Session)

    def conforming(self, operator: Requester, others: Sequence[Requester]) -> list[str]:
        """Send valid requests; return a message for each wrong reply.

        First each of the others calls every operation on existing objects, then `operator`, which may change them.
        """
        every = dict(self._examples(GenerationMode.POSITIVE))
        for label, cases in every.items():
            for case in cases[::2]:
                case.path_parameters.update(self.known[label.partition(" ")[2]])
        told = [
            self._ask(cases[::2][number % len(cases[::2])], other)
            for cases in every.values()
            for number, other in enumerate(others)
        ]
        told += [self._ask(case, operator) for cases in every.values() for case in cases]
        return [one for one in told if one is not None]

    def unfit(self, operator: Requester) -> list[str]:
        """Send invalid requests; return a message for each reply that is not a documented refusal."""
        every = self._examples(GenerationMode.NEGATIVE)
        told = [self._ask(case, operator, negative_data_rejection) for _, cases in every for case in cases]
        return [one for one in told if one is not None]

    def _ask(self, case: Case[Any], requester: Requester, *more: schemathesis.CheckFunction) -> str | None:
        """Return what is wrong with the reply."""
        operation = case.operation.definition.raw
        if operation["operationId"] in ENDLESS and requester.status is None:
            return None
        if len(case.formatted_path) + len(urlencode(case.query or {}, doseq=True)) > LONGEST:
            return None
        self.asked += 1
        try:
            answer = case.call(base_url=self.url, headers=requester.headers, timeout=30, session=self._session)
            case.validate_response(answer, checks=[*CHECKS, *more])
            requester.check(operation, answer.status_code)
        except Exception as error:
            return f"{case.operation.label}: {error}"
        return None

    def _examples(self, mode: GenerationMode) -> Iterator[tuple[str, list[Case[Any]]]]:
        """Requests for each operation; operations without parameters have no invalid ones."""
        fit_for_all = {key: value for key, value in self.document.items() if key != "security"}  # not varied
        for found in schemathesis.openapi.from_dict(fit_for_all).get_all_operations():
            operation = found.ok()  # type: ignore[union-attr]  # else it raises, and the document is wrong
            if cases := self._cases(operation.as_strategy(generation_mode=mode)):
                yield operation.label, cases

    def _cases(self, strategy: Any) -> list[Case[Any]]:  # Any: a strategy for Case
        cases: list[Case[Any]] = []

        @settings(
            max_examples=self.examples,
            database=None,
            deadline=None,
            derandomize=self.repeatable,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        def collect(case: Case[Any]) -> None:
            cases.append(case)

        with suppress(Unsatisfiable):
            given(case=strategy)(collect)()
        return cases
