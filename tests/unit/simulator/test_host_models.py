from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from domain.errors import InvalidInputError
from simulator.host_models import CORES, FITTED, read_host_table
from tests.facts import missing

HEAD = "cpu_model,computers,avg_cores_per_computer,gflops_per_core,gflops_per_computer\n"


def a_table(folder: Path, *rows: str, head: str = HEAD) -> Path:
    path = folder / "hosts.csv"
    path.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_model_is_drawn_as_often_as_it_has_computers(tmp_path: Path) -> None:
    table = read_host_table(a_table(tmp_path, '"Slow, old",30,1.0,1.0,1.0', "Fast,10,8.0,4.0,32.0"))
    cores, speeds = table.draw(np.random.default_rng(1), 40_000)

    assert (cores == 1).mean() == pytest.approx(0.75, abs=0.01)
    assert np.median(speeds[cores == 8]) == pytest.approx(4e9, rel=0.01)


def test_cores_that_are_not_whole_are_the_mean_of_what_is_drawn(tmp_path: Path) -> None:
    cores, _ = read_host_table(a_table(tmp_path, "Mixed,5,2.25,1.0,2.25")).draw(np.random.default_rng(1), 40_000)

    assert set(cores.tolist()) == {2, 3}
    assert cores.mean() == pytest.approx(2.25, abs=0.01)


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        (["A,1,1.0,fast,1.0"], ("row 1, gflops_per_core:", "above 0", "'fast'")),
        (["A,1,1.0,1.0,1.0", "B,-3,1.0,1.0,1.0"], ("row 2, computers:", "above 0", "'-3'")),
        (["A,1,nan,1.0,1.0"], ("row 1, avg_cores_per_computer:", "above 0", "'nan'")),
        (["A,1"], ("row 1, avg_cores_per_computer:", "above 0", "no value")),
        ([], ("row", "0")),
    ],
)
def test_a_wrong_row_is_named_with_its_column(tmp_path: Path, rows: list[str], facts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_host_table(a_table(tmp_path, *rows))

    assert not missing(str(caught.value), *facts)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="expected the columns computers, avg_cores_per_computer"):
        read_host_table(a_table(tmp_path, "1,2", head="a,b\n"))
    with pytest.raises(InvalidInputError, match="a readable CSV file"):
        read_host_table(tmp_path / "missing.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="a readable CSV file"):
        read_host_table(tmp_path / "binary.csv")


@pytest.mark.parametrize(
    ("name", "mean_cores", "median_gflops"), [("seti", 2.6, 3.4), ("einstein", 4.7, 11.7), ("lhc", 5.7, 15.5)]
)
def test_fitted_computers_resemble_those_of_the_project(name: str, mean_cores: float, median_gflops: float) -> None:
    """The expected figures are those of the tables."""
    cores, speeds = FITTED[name].draw(np.random.default_rng(1), 100_000)

    assert set(cores.tolist()) <= set(CORES)
    assert cores.mean() == pytest.approx(mean_cores, rel=0.05)
    assert np.median(cores * speeds) / 1e9 == pytest.approx(median_gflops, rel=0.1)
