"""Every operation refuses unknown, invalid and repeated parameters."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec
import msgspec.inspect
import pytest
from aiohttp.test_utils import make_mocked_request

from administration.access.who import Person
from api.reading import read_params
from api.routes import Api
from api.table import Ask, Route
from cli.manual.pages import routes_of_the_api
from domain.access import Right, Role
from domain.errors import InvalidInputError, MusterError
from tests.facts import states

ROUTES = {route.name: route for route in routes_of_the_api()}
ASKED = [(route.name, one) for route in ROUTES.values() for one in route.params.__struct_fields__]
TYPED = {msgspec.inspect.IntType, msgspec.inspect.FloatType, msgspec.inspect.BoolType, msgspec.inspect.EnumType}
OPERATOR = Person("ada", Role.OPERATOR, frozenset(Right))


def read(route: Route[Any, Any], query: list[tuple[str, str]]) -> Any:
    path = dict.fromkeys(route.in_path, "1")
    request = make_mocked_request(route.method, f"/api/v1{route.path}?{urlencode(query)}", match_info=path)
    return request, read_params(request, route)


def kinds_of(field: msgspec.inspect.Field) -> set[type]:
    """The types of a parameter's values, without None."""
    kind = field.type.type if isinstance(field.type, msgspec.inspect.Metadata) else field.type
    inner = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    plain = (one.type if isinstance(one, msgspec.inspect.Metadata) else one for one in inner)
    return {type(one) for one in plain} - {msgspec.inspect.NoneType}


def typed_in_query() -> list[tuple[str, str]]:
    """Query parameters that are numbers, flags or enumerations."""
    found = []
    for route in ROUTES.values():
        struct = msgspec.inspect.type_info(route.params)
        assert isinstance(struct, msgspec.inspect.StructType)
        for field in struct.fields:
            if field.name not in route.in_path and kinds_of(field) <= TYPED:
                found.append((route.name, field.name))
    return found


@pytest.mark.parametrize("name", [name for name, route in ROUTES.items() if not route.open_params])
def test_unknown_parameter_is_named(name: str) -> None:
    with states(InvalidInputError, "nonsense:", "known"):
        read(ROUTES[name], [("nonsense", "7")])


@pytest.mark.parametrize(("name", "param"), typed_in_query())
def test_invalid_parameter_value_is_named(name: str, param: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read(ROUTES[name], [(param, "nonsense")])

    assert (caught.value.field, caught.value.got) == (param, "nonsense")


@pytest.mark.parametrize(("name", "param"), [one for one in ASKED if one[1] not in ROUTES[one[0]].in_path])
def test_repeated_parameter_is_refused(name: str, param: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{param}: expected one value, got '1, 2'$"):
        read(ROUTES[name], [(param, "1"), (param, "2")])


@pytest.mark.parametrize("name", [name for name, route in ROUTES.items() if "cursor" in route.params.__struct_fields__])
async def test_a_cursor_of_another_list_is_refused(name: str, api: Api) -> None:
    """Operations that first look up an unknown batch or host return 404."""
    [route] = [one for one in api.table.routes if one.name == name]
    request, params = read(route, [("cursor", "bm9uc2Vuc2U")])
    with pytest.raises(MusterError) as caught:
        await route.handler(Ask(request, OPERATOR, params, None))

    assert str(caught.value).startswith(("cursor: expected a next_cursor of", "no batch 1", "no host 1", "no app 1"))


@pytest.mark.parametrize("query", ["nonsense=7", "p_tight=high", "deadline.p_tight=2", "grace=1", ""])
async def test_threshold_preview_checks_its_query(query: str, api: Api) -> None:
    [route] = [one for one in api.table.routes if one.open_params]
    request = make_mocked_request("GET", f"/api/v1{route.path}?{query}")
    with pytest.raises(InvalidInputError):
        params = read_params(request, route)
        await route.handler(Ask(request, OPERATOR, params, None))
