"""How far a process has come, in a file: what it did counts also when it ends before its time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Noted:
    """Executions of one turn.

    >>> import tempfile
    >>> noted = Noted.of(Path(tempfile.mkdtemp()), "decode", 7)
    >>> noted.executions += 3
    >>> noted.write()
    >>> noted.taken(), noted.taken()
    (3, 0)
    """

    path: Path
    executions: int = 0

    @classmethod
    def of(cls, folder: Path, target: str, seed: int) -> Noted:
        return cls(folder / f"{target}-{seed}.executions")

    def write(self) -> None:
        self.path.write_text(f"{self.executions}\n", encoding="utf-8")

    def taken(self) -> int:
        """What was written; that is gone then, so that nothing is counted twice."""
        if not self.path.exists():
            return 0
        executions = int(self.path.read_text(encoding="utf-8"))
        self.path.unlink()
        return executions
