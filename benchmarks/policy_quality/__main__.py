"""The command: `python -m benchmarks.policy_quality --help`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import benchmarks.policy_quality as what
from benchmarks.policy_quality.frontier import Frontier
from benchmarks.policy_quality.kept import FOLDER, ROOT, KeptRuns
from benchmarks.policy_quality.measured import Measured
from benchmarks.policy_quality.page import with_section
from benchmarks.policy_quality.running import lasting, run_all, tell, unkept
from benchmarks.policy_quality.sections import SCENARIOS, Section, seeds_of
from benchmarks.policy_quality.variants import Variants
from domain.errors import InvalidInputError

KINDS: dict[str, Callable[[str, Sequence[int]], Section]] = {
    "measured": Measured,
    "variants": Variants,
    "frontier": Frontier,
}


def sections_of(asked: argparse.Namespace) -> list[Section]:
    """Those that are named; all of them where none is."""
    named = {kind: getattr(asked, kind) for kind in KINDS}
    if all(scenarios is None for scenarios in named.values()):
        named = {kind: list(SCENARIOS) for kind in KINDS}
    return [
        make(scenario, seeds_of(scenario, asked.seeds))
        for kind, make in KINDS.items()
        for scenario in (SCENARIOS if named[kind] == [] else named[kind] or [])
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=what.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about = "{} of these scenarios; without a name of all"
    parser.add_argument("--measured", nargs="*", metavar="SCENARIO", help=about.format("limits, figures and charts"))
    parser.add_argument("--variants", nargs="*", metavar="SCENARIO", help=about.format("other losses and bounds"))
    parser.add_argument("--frontier", nargs="*", metavar="SCENARIO", help=about.format("thresholds in combination"))
    parser.add_argument("--seeds", type=int, default=None, help="5; of large 3")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--anew", action="store_true", help="run also what is kept from before")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="the folder of policy-quality.md")
    asked = parser.parse_args(arguments)
    page = asked.docs / "policy-quality.md"
    sections = sections_of(asked)
    kept = KeptRuns(FOLDER, anew=asked.anew)
    try:
        every = [case for section in sections for case in section.cases]
    except InvalidInputError as error:
        raise SystemExit(str(error)) from error
    tell(f"{', '.join(section.name for section in sections)}: {lasting(unkept(every, kept), asked.processes)}")
    for section in sections:
        said = section.text(run_all(section.cases, kept, processes=asked.processes), asked.docs)
        before = page.read_text(encoding="utf-8") if page.is_file() else "# How good the policies are\n"
        page.write_text(with_section(before, section.name, said, after=section.after), encoding="utf-8")


if __name__ == "__main__":
    main()
