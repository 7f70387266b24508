"""The stock client as one more volunteer of the demonstration, where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from pathlib import Path

CONFIG = """<cc_config><options><skip_cpu_benchmarks>1</skip_cpu_benchmarks><no_gpus>1</no_gpus><ncpus>1</ncpus>
<dont_contact_ref_site>1</dont_contact_ref_site><no_info_fetch>1</no_info_fetch>
<allow_multiple_clients>1</allow_multiple_clients><report_results_immediately>1</report_results_immediately>
</options></cc_config>
"""
PREFERENCES = """<global_preferences><run_on_batteries>1</run_on_batteries><run_if_user_active>1</run_if_user_active>
<suspend_cpu_usage>0</suspend_cpu_usage><work_buf_min_days>0.0001</work_buf_min_days>
<work_buf_additional_days>0</work_buf_additional_days><disk_max_used_gb>0</disk_max_used_gb>
<disk_max_used_pct>100</disk_max_used_pct><disk_min_free_gb>0.1</disk_min_free_gb>
</global_preferences>
"""
STOP_S = 5.0


class StockVolunteer:
    """Runs `boinc` attached to the project; does nothing where it is not installed."""

    def __init__(self, folder: Path, url: str, account_key: str) -> None:
        self._folder = folder
        self._url = url
        self._account_key = account_key
        self._process: asyncio.subprocess.Process | None = None
        self._program = shutil.which("boinc")

    def state(self) -> str:
        """absent (not installed) or joined."""
        return "absent" if self._program is None else "joined"

    async def start(self) -> None:
        if self._program is None:
            return
        self._folder.mkdir(parents=True)
        (self._folder / "cc_config.xml").write_text(CONFIG)
        (self._folder / "global_prefs_override.xml").write_text(PREFERENCES)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with (self._folder / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                self._program,
                *("--dir", str(self._folder), "--gui_rpc_port", str(port)),
                *("--attach_project", self._url, self._account_key),
                stdout=log,
                stderr=log,
            )

    async def stop(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
