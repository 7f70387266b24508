"""Runs Debian's boinc-client as a volunteer would, each in its own folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.waiting import BUSY
from tests.ports import free_port

CONFIG = """<cc_config>
<log_flags><file_xfer>1</file_xfer><sched_ops>1</sched_ops><task>1</task><sched_op_debug>1</sched_op_debug></log_flags>
<options><skip_cpu_benchmarks>1</skip_cpu_benchmarks><dont_contact_ref_site>1</dont_contact_ref_site>
<no_info_fetch>1</no_info_fetch>{no_gpus}<allow_multiple_clients>1</allow_multiple_clients>
<report_results_immediately>{report_immediately:d}</report_results_immediately>{more}</options>
</cc_config>
"""
PREFERENCES = """<global_preferences><run_on_batteries>1</run_on_batteries><run_if_user_active>1</run_if_user_active>
<suspend_cpu_usage>0</suspend_cpu_usage><work_buf_min_days>{buffer_days}</work_buf_min_days>
<work_buf_additional_days>0</work_buf_additional_days><disk_max_used_gb>0</disk_max_used_gb>
<disk_max_used_pct>100</disk_max_used_pct><disk_min_free_gb>0.1</disk_min_free_gb>
<leave_apps_in_memory>1</leave_apps_in_memory><max_bytes_sec_up>{upload_bytes_per_s}</max_bytes_sec_up>
</global_preferences>
"""
FAKE_GPU = (
    "<coproc><type>fake_gpu</type><count>1</count><peak_flops>1e12</peak_flops><device_nums>0</device_nums></coproc>"
)


def installed() -> bool:
    return shutil.which("boinc") is not None and shutil.which("boinccmd") is not None


@dataclass
class StockClient:
    """One client attached to one project."""

    folder: Path
    url: str
    account_key: str
    ncpus: int = 2
    buffer_days: float = 0.0001
    fake_gpu: bool = False
    report_immediately: bool = True
    upload_bytes_per_s: int = 0  # 0 = unlimited
    _port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None
    _attached: bool = False

    def start(self) -> None:
        """Start the client; the first start attaches it to the project."""
        (self.folder / "notices").mkdir(parents=True, exist_ok=True)  # as the package makes it
        more = f"<ncpus>{self.ncpus}</ncpus>" + (FAKE_GPU if self.fake_gpu else "")
        no_gpus = "" if self.fake_gpu else "<no_gpus>1</no_gpus>"
        (self.folder / "cc_config.xml").write_text(
            CONFIG.format(no_gpus=no_gpus, more=more, report_immediately=self.report_immediately)
        )
        preferences = PREFERENCES.format(buffer_days=self.buffer_days, upload_bytes_per_s=self.upload_bytes_per_s)
        (self.folder / "global_prefs_override.xml").write_text(preferences)
        command = ["boinc", "--dir", str(self.folder), "--gui_rpc_port", str(self._port)]
        for kind in ("pers", "sched"):
            command += [f"--{kind}_retry_delay_min", "1", f"--{kind}_retry_delay_max", "3"]
        if not self._attached:
            command += ["--attach_project", self.url, self.account_key]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._attached = True

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def command(self, *arguments: str) -> str:
        """Run boinccmd against this client."""
        key_file = self.folder / "gui_rpc_auth.cfg"
        wait_for(key_file.exists, 10, "the client's RPC password")
        command = ["boinccmd", "--host", f"127.0.0.1:{self._port}", "--passwd", key_file.read_text().strip()]
        for _ in range(20):
            run = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=20, check=False)
            if run.returncode == 0:
                return run.stdout
            time.sleep(0.25)  # the client opens its RPC port shortly after it starts
        raise AssertionError(f"boinccmd {arguments}: {run.stdout}{run.stderr}")

    def update(self) -> None:
        """Make the client send a scheduler request within seconds, regardless of back-offs."""
        self.command("--project", self.url, "update")

    def credit(self) -> tuple[float, float]:
        """Return the total credit of the volunteer and of this host, as the client shows it."""
        status = self.command("--get_project_status")
        totals = [re.search(rf"{of}_total_credit: ([0-9.]+)", status) for of in ("user", "host")]
        assert totals[0] is not None
        assert totals[1] is not None
        return float(totals[0][1]), float(totals[1][1])

    def feeds(self) -> str:
        """Return the client's list of the project's feeds."""
        return "".join([path.read_text(errors="replace") for path in (self.folder / "notices").rglob("feeds_*")])

    def account(self) -> str:
        """Return the client's copy of the project's account, including preferences."""
        [path] = self.folder.glob("account_*.xml")
        return path.read_text(errors="replace")

    def task_names(self) -> list[str]:
        return re.findall(r"^\s*name: (\S+)", self.command("--get_tasks"), re.MULTILINE)

    def active_tasks(self) -> list[str]:
        """Return the names of running tasks."""
        tasks = self.command("--get_tasks").split(") -----------")
        names = (re.search(r"^\s*name: (\S+)", task, re.MULTILINE) for task in tasks if "EXECUTING" in task)
        return [name[1] for name in names if name]

    def waiting_trickles(self) -> list[str]:
        """Return trickle messages that were not acknowledged, sent or not."""
        return [path.name for path in (self.folder / "projects").rglob("trickle_up_*")]

    def last_request(self) -> str:
        """Return the last scheduler request."""
        [path] = self.folder.glob("sched_request_*.xml")
        return path.read_text(errors="replace")

    def abort(self, task: str) -> None:
        self.command("--task", self.url, task, "abort")


def wait_for(condition: object, at_most_s: float, what: str) -> None:
    """Poll until `condition()` is true: the client is another program and offers only its state."""
    assert callable(condition)
    at_most_s *= BUSY
    end = time.monotonic() + at_most_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {at_most_s} s for {what}")
        time.sleep(0.1)
