"""The page of the batch file has every field with its default, and its examples are valid batches."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from domain.errors import InvalidInputError
from jobs.spec import parse_batch, size_of, with_rows

PAGE = (Path(__file__).parents[2] / "docs/reference/batch-file.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
LEAST: dict[str, object] = {"app": "pi", "qos": "afap", "submitter": "ada"}


def rows_under(heading: str) -> dict[str, str]:
    """Return field to default from the first table after these words."""
    table = PAGE.partition(heading)[2].partition("|---|")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    return {field: default for fields, default, *_ in rows for field in re.findall(r"`(\w+)`", fields)}


def known_to(values: dict[str, object]) -> set[str]:
    """Return the fields listed as known when one is unknown."""
    with pytest.raises(InvalidInputError, match="this field is unknown") as caught:
        parse_batch(LEAST | values)
    listed = re.search(r"expected one of (.*); this field", str(caught.value))
    assert listed is not None
    return set(listed[1].split(", "))


def jobs(**fields: object) -> dict[str, object]:
    return {"jobs": {"count": 1, "fpops_est": 1e9, **fields}}


def test_the_page_has_every_field_and_no_other() -> None:
    assert set(rows_under("## The batch\n")) == known_to({"none": 0})
    assert set(rows_under("## Fields of a job\n")) == known_to(jobs(none=0))
    assert set(rows_under("| of an input ")) == known_to(jobs(inputs=[{"none": 0}]))
    assert set(rows_under("| of an output ")) == known_to(jobs(outputs=[{"none": 0}]))


@pytest.mark.parametrize(
    ("heading", "plain"), [("## The batch\n", False), ("## Fields of a job\n", True)], ids=["batch", "job"]
)
def test_a_default_that_is_named_is_the_one_that_is_taken(heading: str, plain: bool) -> None:
    named = {field: default for field, default in rows_under(heading).items() if re.fullmatch(r"`[^`]+`", default)}
    given = {field: tomllib.loads(f"x = {read_as_toml(default[1:-1])}")["x"] for field, default in named.items()}

    assert len(given) >= 3
    table = jobs(**given) if plain else jobs() | given
    assert parse_batch(LEAST | table) == parse_batch(LEAST | jobs())


def read_as_toml(default: str) -> str:
    return f'"{default}"' if re.fullmatch(r"[a-z]+", default) and default not in ("true", "false") else default


@pytest.mark.parametrize("example", EXAMPLES, ids=["alike", "kinds", "rows"])
def test_an_example_is_a_batch(example: str) -> None:
    spec = parse_batch({"submitter": "ada", **tomllib.loads(example)})
    if spec.jobs_csv:
        spec = with_rows(spec, lambda: [{"site": "a", "count": ""}, {"site": "b", "count": "2"}])

    assert size_of(spec).jobs in (10, 300, 3)
