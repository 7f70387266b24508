"""`make chaos SCHEDULES=N SEED=S`: rounds, with a summary in the last line. Exit status 1: something is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from tests.chaos.deployment import Deployment, deployed
from tests.chaos.rounds import Round, run_round
from tests.chaos.schedule import KINDS, NEEDS_COMPILER, NEEDS_ROOT, draw_schedule
from tests.chaos.sync_faults import can_be_built
from transfer.keys import create_keys

RENEWED_AFTER = 25  # rounds on one database
VOLUNTEERS = 200


def summary(rounds: Sequence[Round]) -> dict[str, object]:
    """Return the totals of the rounds as one object."""
    told, verdicts = [one.told for one in rounds], [one.verdict for one in rounds]
    return {
        "schedules": len(rounds),
        "faults": sum(len(one.schedule.faults) for one in rounds),
        "by_kind": dict(Counter(fault.kind for one in rounds for fault in one.schedule.faults).most_common()),
        "requests": sum(one.requests for one in told),
        "requests_repeated": sum(one.repeated for one in told) + sum(one.doubled_requests for one in rounds),
        "requests_broken": sum(one.broken for one in told),
        "jobs_told": sum(len(one.jobs) for one in told),
        "outputs_acknowledged": sum(len(one.outputs) for one in told),
        "results_acknowledged": sum(len(one.reports) for one in told),
        "slowest_calm_s": round(max((one.calm_after_s for one in rounds), default=0.0), 1),
        "lost": sum(len(one.lost) for one in verdicts),
        "doubled": sum(len(one.doubled) for one in verdicts),
        "wrong": sum(len(one.wrong) for one in verdicts),
        "bad_seeds": [one.schedule.seed for one in rounds if not one.verdict.good],
    }


def last_line(rounds: Sequence[Round]) -> str:
    """Return the summary as text."""
    said = summary(rounds)
    names = ("schedules", "faults", "results_acknowledged", "lost", "doubled", "wrong")
    return ", ".join(f"{name.replace('_', ' ')} {said[name]}" for name in names)


def tell(done: Round) -> None:
    """Print a line per round, and one per finding."""
    told, verdict = done.told, done.verdict
    figures = f"{len(told.reports)} results, {len(told.outputs)} outputs, {told.broken} broken of {told.requests}"
    click.echo(f"{done.schedule}: {figures}, calm after {done.calm_after_s:.1f} s, {done.took_s:.0f} s", err=True)
    for kind, found in (("lost", verdict.lost), ("doubled", verdict.doubled), ("wrong", verdict.wrong)):
        for one in found:
            click.echo(f"  {kind}: {one}", err=True)


async def run(rounds: list[Round], schedules: int, seed: int, volunteers: int, keep: Path | None) -> None:
    """Add rounds, on deployments that are replaced at intervals and after a failed round."""
    kinds = KINDS.keys() - (frozenset() if os.getuid() == 0 else NEEDS_ROOT)
    kinds -= frozenset() if can_be_built() else NEEDS_COMPILER
    with tempfile.TemporaryDirectory() as folder:
        keys_dir = Path(folder) / "keys"
        create_keys(keys_dir)
        while len(rounds) < schedules:
            async with deployed(keys_dir, volunteers) as made:
                for _ in range(min(RENEWED_AFTER, schedules - len(rounds))):
                    done = await run_round(made, draw_schedule(seed + len(rounds), kinds=kinds))
                    rounds.append(done)
                    tell(done)
                    if not done.verdict.good:
                        _keep_logs(made, done, keep)
                        break


def _keep_logs(made: Deployment, done: Round, keep: Path | None) -> None:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"node-{done.schedule.seed}.log").write_bytes(made.node.log_file.read_bytes())


@click.command()
@click.option("--schedules", type=click.IntRange(1), default=10, show_default=True)
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Seed of the first schedule; each next one has one more."
)
@click.option("--volunteers", type=click.IntRange(1), default=VOLUNTEERS, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), default=None, help="Folder for logs of failed rounds.")
@click.option("--json", "as_json", is_flag=True, help="The last line is one JSON object.")
def main(schedules: int, seed: int, volunteers: int, keep: Path | None, as_json: bool) -> None:
    """Break a real deployment under load repeatedly; nothing may be lost or doubled."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by default in a shell's background jobs
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # stop all started processes
    rounds: list[Round] = []
    with suppress(KeyboardInterrupt):  # report the completed rounds
        asyncio.run(run(rounds, schedules, seed, volunteers, keep))
    if not as_json:
        for name, value in summary(rounds).items():
            click.echo(f"{name.replace('_', ' ')}: {value}", err=True)
    click.echo(json.dumps(summary(rounds)) if as_json else last_line(rounds))
    sys.exit(len(rounds) < schedules or any(not one.verdict.good for one in rounds))


if __name__ == "__main__":
    main()
