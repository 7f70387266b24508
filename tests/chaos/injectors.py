"""Injects and undoes each kind of fault with real signals, disks and connections."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

import asyncpg
import psutil

from tests.chaos.deployment import Deployment
from tests.chaos.schedule import CLOCK_STEPS_S, Fault
from tests.chaos.sync_faults import DEADLY_S
from tests.chaos.upgrade import upgrade
from tests.faults.waiting import CLOCK

Injector = Callable[[Deployment, Fault], Awaitable[None]]

OF_THE_DATABASE = {"kill database", "kill database session", "stop database", "database full", "fail-over"}
OF_THE_NODE = {"kill node", "upgrade", "freeze node"}


async def inject(made: Deployment, fault: Fault) -> None:
    """Inject the fault, wait, and undo it."""
    async with AsyncExitStack() as stack:
        if fault.kind in OF_THE_DATABASE:
            await stack.enter_async_context(made.one_at_the_database)
        if fault.kind in OF_THE_NODE:
            await stack.enter_async_context(made.one_at_the_node)
        await INJECTORS[fault.kind](made, fault)


async def mend(made: Deployment) -> None:
    """Undo all faults, after any outcome."""
    made.set_clock(0.0)
    for link in (made.clients, made.database):
        link.delay_s, link.doubles = 0.0, False
        link.thaw()
        await link.listen()
    made.uploads.empty()
    made.syncs.set(0.0)
    made.primary.disk.empty()
    await made.primary.revive()


def picked(found: list[psutil.Process], fault: Fault) -> list[psutil.Process]:
    """Return an item chosen by the fault's draw; None if there are none."""
    return [found[int(fault.draw * len(found))]] if found else []


def send(found: list[psutil.Process], number: signal.Signals) -> None:
    for one in found:
        with suppress(psutil.Error):
            one.send_signal(number)


async def kill_worker(made: Deployment, fault: Fault) -> None:
    send(picked(made.node.children("worker"), fault), signal.SIGKILL)


async def kill_all_workers(made: Deployment, fault: Fault) -> None:
    send(made.node.children("worker"), signal.SIGKILL)


async def kill_background(made: Deployment, fault: Fault) -> None:
    send(made.node.children("background"), signal.SIGKILL)


async def kill_node(made: Deployment, fault: Fault) -> None:
    made.node.kill()
    await CLOCK.sleep(fault.lasts_s)
    await made.node.start()


async def kill_database(made: Deployment, fault: Fault) -> None:
    await asyncio.to_thread(made.primary.kill)
    await CLOCK.sleep(fault.lasts_s)
    await made.primary.revive()


async def kill_session(made: Deployment, fault: Fault) -> None:
    """Kill one session: the server ends all others, and recovers."""
    sessions = [one for one in made.primary.processes()[1:] if _serves(one)]
    send(picked(sessions, fault), signal.SIGKILL)


def _serves(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "muster" in " ".join(process.cmdline())
    return False


async def stop_worker(made: Deployment, fault: Fault) -> None:
    await _stopped(picked(made.node.children("worker"), fault), fault)


async def stop_background(made: Deployment, fault: Fault) -> None:
    await _stopped(made.node.children("background"), fault)


async def _stopped(found: list[psutil.Process], fault: Fault) -> None:
    send(found, signal.SIGSTOP)
    await CLOCK.sleep(fault.lasts_s)
    send(found, signal.SIGCONT)


async def freeze_node(made: Deployment, fault: Fault) -> None:
    """Freeze the supervisor too, as on a suspended machine: nothing is restarted meanwhile."""
    await _stopped(made.node.family(), fault)


async def stop_database(made: Deployment, fault: Fault) -> None:
    await _stopped(made.primary.processes(), fault)


async def uploads_full(made: Deployment, fault: Fault) -> None:
    await asyncio.to_thread(made.uploads.fill)
    await CLOCK.sleep(fault.lasts_s)
    made.uploads.empty()


async def sync_slow(made: Deployment, fault: Fault) -> None:
    """Slow syncs: impatient clients disconnect and return while their last bytes are synced."""
    made.syncs.set(2.0 + 3.0 * fault.draw)
    await CLOCK.sleep(fault.lasts_s)
    made.syncs.set(0.0)


async def sync_deadly(made: Deployment, fault: Fault) -> None:
    made.syncs.set(DEADLY_S)
    await CLOCK.sleep(fault.lasts_s)
    made.syncs.set(0.0)


async def database_full(made: Deployment, fault: Fault) -> None:
    disk = made.primary.disk
    await asyncio.to_thread(disk.fill)
    await CLOCK.sleep(fault.lasts_s)
    disk.empty()
    await made.primary.revive()


async def clients_cut(made: Deployment, fault: Fault) -> None:
    made.clients.cut()
    await CLOCK.sleep(fault.lasts_s)
    await made.clients.listen()


async def clients_slow(made: Deployment, fault: Fault) -> None:
    made.clients.delay_s = 0.05 + 0.4 * fault.draw
    await CLOCK.sleep(fault.lasts_s)
    made.clients.delay_s = 0.0


async def clients_doubled(made: Deployment, fault: Fault) -> None:
    made.clients.doubles = True
    await CLOCK.sleep(fault.lasts_s)
    made.clients.doubles = False


async def database_cut(made: Deployment, fault: Fault) -> None:
    made.database.cut()
    await CLOCK.sleep(fault.lasts_s)
    await made.database.listen()


async def database_slow(made: Deployment, fault: Fault) -> None:
    made.database.delay_s = 0.002 + 0.03 * fault.draw
    await CLOCK.sleep(fault.lasts_s)
    made.database.delay_s = 0.0


async def database_silent(made: Deployment, fault: Fault) -> None:
    made.database.freeze()
    await CLOCK.sleep(fault.lasts_s)
    made.database.thaw()


async def fail_over(made: Deployment, fault: Fault) -> None:
    """Promote the synchronous standby, which was created before the load."""
    await asyncio.to_thread(made.primary.kill)
    await CLOCK.sleep(fault.lasts_s)
    await asyncio.to_thread(made.spare.promote)
    made.primary, made.spare = made.spare, made.primary
    made.database.lead_to(made.primary.port)


async def clock_forward(made: Deployment, fault: Fault) -> None:
    await _clock_off(made, fault, 1.0)


async def clock_backward(made: Deployment, fault: Fault) -> None:
    await _clock_off(made, fault, -1.0)


async def _clock_off(made: Deployment, fault: Fault, sign: float) -> None:
    made.set_clock(sign * CLOCK_STEPS_S[int(fault.draw * len(CLOCK_STEPS_S))])
    await CLOCK.sleep(fault.lasts_s)
    made.set_clock(0.0)


async def upgraded(made: Deployment, fault: Fault) -> None:
    """The `post` step runs after the old code is gone: the node is restarted in between."""
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):  # another fault may interfere
        await upgrade(made.dsn, restart=made.node)


INJECTORS: dict[str, Injector] = {
    "kill worker": kill_worker,
    "kill all workers": kill_all_workers,
    "kill background": kill_background,
    "kill node": kill_node,
    "kill database": kill_database,
    "kill database session": kill_session,
    "stop worker": stop_worker,
    "stop background": stop_background,
    "stop database": stop_database,
    "uploads full": uploads_full,
    "sync slow": sync_slow,
    "sync deadly": sync_deadly,
    "database full": database_full,
    "clients cut": clients_cut,
    "clients slow": clients_slow,
    "clients doubled": clients_doubled,
    "database cut": database_cut,
    "database slow": database_slow,
    "database silent": database_silent,
    "fail-over": fail_over,
    "clock forward": clock_forward,
    "clock backward": clock_backward,
    "upgrade": upgraded,
    "freeze worker": stop_worker,
    "freeze background": stop_background,
    "freeze node": freeze_node,
}
