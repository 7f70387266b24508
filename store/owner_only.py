"""Who may connect to the embedded database? Whose data directory it is, and root; over its socket alone.

Two walls: the socket can be used by the server's own user and root only, and PostgreSQL asks the kernel who calls
(`peer`) and knows no other names. Where the user has no name (containers), the first wall stands alone. Files that
an operator wrote are left as they are.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

MARK = "# Written by Muster"
MAP = "muster"
_INITDB_TRUSTS = 'Configuring the system for local "trust" authentication'
_SOCKET = "unix_socket_permissions"
_OWNER_ALONE = f"{_SOCKET} = 0700  {MARK}: the socket is its owner's\n"


def close_to_others(data_dir: Path) -> bool:
    """Write the server's files so that nobody else gets in; whether one of them changed. The folder is made already."""
    names = _names(data_dir)
    return any(
        [
            _put(data_dir / "pg_hba.conf", hba(named=bool(names)), ours=_is_ours_or_trusts),
            _put(data_dir / "pg_ident.conf", ident(names), ours=_is_ours_or_empty),
            _close_socket(data_dir / "postgresql.conf"),
        ]
    )


def hba(*, named: bool) -> str:
    """Which connections are taken: those of the socket.

    >>> [line.split() for line in hba(named=True).splitlines()[1:]]
    [['local', 'all', 'all', 'peer', 'map=muster'], ['local', 'replication', 'all', 'peer', 'map=muster']]
    """
    how = f"peer map={MAP}" if named else "trust"  # unnamed: whoever may use the socket
    return f"{MARK}: connections over the socket, from its owner.\nlocal all all {how}\nlocal replication all {how}\n"


def ident(names: list[str]) -> str:
    """Which users of the system may be which of the database.

    >>> ident(["ada"]).splitlines()[1:]
    ['muster "ada" all']
    """
    return f"{MARK}: users of this system, and who they may be.\n" + "".join(f'{MAP} "{name}" all\n' for name in names)


def _names(data_dir: Path) -> list[str]:
    """Root, who runs this, and whose folder it is, where they have names."""
    found = {_name(0), _name(os.geteuid())}
    if os.geteuid() != 0:
        found.add(_name(data_dir.stat().st_uid))
    return sorted(name for name in found if name) if _name(os.geteuid()) else []


def _name(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def _is_ours_or_trusts(text: str) -> bool:
    return text.startswith(MARK) or _INITDB_TRUSTS in text


def _is_ours_or_empty(text: str) -> bool:
    return text.startswith(MARK) or all(line.startswith("#") for line in text.splitlines() if line.strip())


def _put(path: Path, text: str, *, ours: Callable[[str], bool]) -> bool:
    before = path.read_text(encoding="utf-8")
    if before == text or not ours(before):
        return False
    _replace(path, text)
    return True


def _close_socket(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    if any(line.lstrip().startswith(_SOCKET) for line in text.splitlines()):
        return False
    _replace(path, text.rstrip("\n") + "\n" + _OWNER_ALONE)
    return True


def _replace(path: Path, text: str) -> None:
    """In one step, for the server's own user as before."""
    beside, was = path.with_name(path.name + ".new"), path.stat()
    beside.write_text(text, encoding="utf-8")
    beside.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(beside, was.st_uid, was.st_gid)
    beside.replace(path)
