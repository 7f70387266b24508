"""What the command line loads before it knows what to do: a command's own modules are imported when it runs."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {"aiohttp", "asyncpg", "cryptography", "jinja2", "lxml", "numpy", "scipy", "simulator", "store"}
PROGRAM = """
import contextlib, io, json, sys
from cli.main import ENTRIES, main
loaded = {}
for name in ("", *ENTRIES):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main([*name.split(), "--help"])
    loaded[name] = sorted(sys.modules)
print(json.dumps(loaded))
"""


def test_help_of_every_command_loads_no_heavy_module() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert len(loaded) > 20
    assert {name: sorted(HEAVY & set(modules)) for name, modules in loaded.items() if HEAVY & set(modules)} == {}
