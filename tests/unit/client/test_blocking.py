"""The blocking client in scripts, in running event loops, in threads and after a fork; its interruption and its end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from muster_client import SyncClient, UnreachableError
from muster_client.loop_thread import ClosedError
from tests.unit.client.serving import Served, serving

ROOT = Path(__file__).parents[3]


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as one:
        yield one


@pytest.fixture
def client(served: Served) -> Iterator[SyncClient]:
    with SyncClient(served.url, "t") as one:
        yield one


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "muster-client"]


async def test_calls_work_in_a_running_event_loop(client: SyncClient) -> None:
    assert client.batch(7)["batch_id"] == 7
    assert [one["unsent"] for one in client.watch(7)] == [1, 0]


def test_threads_share_one_client(client: SyncClient) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: client.batch(7)["batch_id"], range(40)))

    assert found == [7] * 40
    assert len(threads()) == 1


def test_calls_keep_their_connection(client: SyncClient, served: Served) -> None:
    for _ in range(3):
        client.batch(7)

    assert len(served.connections) == 1


def test_paths_may_be_strings(client: SyncClient, served: Served, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("input")

    client.put_file(str(tmp_path / "in.txt"))
    client.put_file(tmp_path / "in.txt", name="in-1.txt")
    nbytes = client.fetch_output(7, "out", str(tmp_path / "out"))

    assert served.put == {"in.txt": b"input", "in-1.txt": b"input"}
    assert (nbytes, (tmp_path / "out").read_text()) == (6, "output")


def test_missing_server_raises_unreachable() -> None:
    client = SyncClient("http://127.0.0.1:1/", "t")

    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/api/v1 does not reply"):
        client.batch(1)
    client.close()


def interrupt_once(served: Served) -> None:
    """Interrupt the main thread when its request has reached the server."""
    assert served.hangs.wait(10)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's background processes ignore SIGINT; Python raises KeyboardInterrupt only if it installs its handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_cancels_the_request(client: SyncClient, served: Served, tmp_path: Path) -> None:
    for ask in (lambda: client.batch(8), lambda: client.fetch_output(7, "endless", tmp_path / "out")):
        served.hangs.clear()
        served.cancelled.clear()
        interrupter = threading.Thread(target=interrupt_once, args=(served,))
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            ask()
        interrupter.join()
        assert served.cancelled.wait(10)

    assert not (tmp_path / "out").exists()
    assert client.batch(7)["batch_id"] == 7


def test_leaving_an_iteration_ends_its_request(client: SyncClient, served: Served) -> None:
    for one in client.watch(8):
        assert one["unsent"] == 1
        break

    assert served.cancelled.wait(10)


def test_close_ends_the_thread_and_waiting_calls(served: Served) -> None:
    client = SyncClient(served.url, "t")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.batch, 8)
        assert served.hangs.wait(10)
        client.close()
        with pytest.raises(ClosedError):
            waiting.result(10)

    assert threads() == []
    with pytest.raises(ClosedError, match="create a new one"):
        client.batch(7)
    client.close()


def test_unused_client_starts_no_thread() -> None:
    with SyncClient("http://127.0.0.1:1/", "t"):
        assert threads() == []


def test_collected_client_ends_its_thread(served: Served) -> None:
    client = SyncClient(served.url, "t")
    client.batch(7)
    [thread] = threads()

    del client
    gc.collect()
    thread.join(10)

    assert not thread.is_alive()


SCRIPT = """
    import sys
    from muster_client import SyncClient
    client = SyncClient(sys.argv[1], "t")
    print(client.batch(7))
    print(next(client.watch(8)))
"""

FORKING = """
    import os, sys
    from muster_client import SyncClient
    client = SyncClient(sys.argv[1], "t")
    print(client.batch(7)["batch_id"], flush=True)
    if (child := os.fork()) == 0:
        print("child", client.batch(7)["batch_id"], flush=True)
        sys.exit()
    print("ended", os.waitpid(child, 0)[1], flush=True)
    print("parent", client.batch(7)["batch_id"], flush=True)
"""


def run(script: str, url: str) -> subprocess.CompletedProcess[str]:
    # Python 3.12 and later warn about os.fork in a process with threads.
    strictly = ["-X", "dev", "-W", "error", "-W", "ignore::DeprecationWarning"]
    command = [sys.executable, *strictly, "-c", textwrap.dedent(script), url]
    done = subprocess.run(command, cwd=ROOT / "client", capture_output=True, text=True, timeout=60, check=False)
    lines = done.stderr.splitlines(keepends=True)  # debug mode also reports slow callbacks of a busy machine
    done.stderr = "".join(line for line in lines if not line.startswith("Executing <"))
    return done


def test_script_ends_quietly_without_close(served: Served) -> None:
    done = run(SCRIPT, served.url)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "{'batch_id': 7}\n{'unsent': 1}\n"
    assert served.cancelled.wait(10)


def test_forked_process_opens_connections_of_its_own(served: Served) -> None:
    done = run(FORKING, served.url)

    assert done.stdout.splitlines() == ["7", "child 7", "ended 0", "parent 7"]
    assert (done.returncode, done.stderr) == (0, "")
    assert len(served.connections) == 2
