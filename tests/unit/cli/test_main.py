"""The menu lists every command, and imports only the one called."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.main import ENTRIES, muster

HEAVY = ("aiohttp", "asyncpg", "numpy", "scipy", "runtime.compose", "store.postgres")


@pytest.mark.parametrize("name", ENTRIES)
def test_summary_matches_the_commands_help(name: str) -> None:
    assert ENTRIES[name][1] == muster.commands[name].get_short_help_str(limit=200)


def test_help_imports_no_command() -> None:
    look = f"print([name for name in {HEAVY} if name in sys.modules])"
    script = f"import sys; from cli.main import main; main(['--help']); {look}"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
    assert all(f"\n  {name} " in done.stdout for name in ENTRIES)
