"""Asks every operation of the API what its document lets one ask, and what it does not, as everybody there may be."""

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
LONGEST = 8000  # about so many bytes of an address are read: what is longer comes to no API
SCOPE = re.compile(r"Needs the scope `(\w+)`")


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody with a token, or without. `status` is what everything is answered with, where it is all the same.

    `scopes`: what the token may do. `never`: operations that must not succeed, although the scope is there.
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
        """Raises AssertionError where an operation may not be answered like that."""
        [scope] = SCOPE.findall(operation["description"])
        if self.status is not None:
            assert status == self.status, f"{self.name} is answered {status} instead of {self.status}"
        elif Right(scope) not in self.scopes:
            assert status == 403, f"{self.name} has no scope {scope} and is answered {status}"
        elif operation["operationId"] in self.never:
            assert status >= 400, f"{self.name} is answered {status}, and that is for others"


@dataclass(slots=True)
class Questions:
    """A document, and where it is served. `known` are values of what stands in a path, for things that there are.

    `examples` of each operation are asked, the same ones every time where it is `repeatable`. `asked` counts requests.
    """

    document: Mapping[str, Any]
    url: str
    examples: int
    known: Mapping[str, dict[str, Any]]  # by path
    repeatable: bool
    asked: int = 0
    _session: requests.Session = field(default_factory=requests.Session)

    def conforming(self, operator: Asker, others: Sequence[Asker]) -> list[str]:
        """What of the answers to what fits was wrong, a sentence each.

        All of the others ask each operation, what there is named in its path; then `operator` does, and may change it.
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

    def unfit(self, operator: Asker) -> list[str]:
        """The same of what does not fit: every answer is a refusal that the document knows of."""
        every = self._examples(GenerationMode.NEGATIVE)
        told = [self._ask(case, operator, negative_data_rejection) for _, cases in every for case in cases]
        return [one for one in told if one is not None]

    def _ask(self, case: Case[Any], asker: Asker, *more: schemathesis.CheckFunction) -> str | None:
        """What is wrong with the answer."""
        operation = case.operation.definition.raw
        if operation["operationId"] in ENDLESS and asker.status is None:
            return None
        if len(case.formatted_path) + len(urlencode(case.query or {}, doseq=True)) > LONGEST:
            return None
        self.asked += 1
        try:
            answer = case.call(base_url=self.url, headers=asker.headers, timeout=30, session=self._session)
            case.validate_response(answer, checks=[*CHECKS, *more])
            asker.check(operation, answer.status_code)
        except Exception as error:
            return f"{case.operation.label}: {error}"
        return None

    def _examples(self, mode: GenerationMode) -> Iterator[tuple[str, list[Case[Any]]]]:
        """Of each operation that has any; what asks for nothing has none that does not fit."""
        fit_for_all = {key: value for key, value in self.document.items() if key != "security"}  # it is not varied
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
