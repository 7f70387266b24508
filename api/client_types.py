"""`python -m api.client_types`: generates the blocking client, with one method per asynchronous method."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "client/muster_client"
ASYNCHRONOUS = ("work", "ordering", "settings")  # modules with one class each, in the client's order of bases

HEAD_OF_BLOCKING = '''"""A blocking client for scripts and notebooks.

Generated from the methods of `Client` by `python -m api.client_types`; do not edit.
"""

from __future__ import annotations

'''
HEAD_OF_CLASS = '''

class SyncClient(LoopThread):
    """A client of one project's API. Raises ApiError if the server refuses, UnreachableError if it does not reply.

    For scripts, notebooks and several threads, with or without `with`.
    """

'''


def blocking_module() -> str:
    """Return the source of a class with a blocking method for each asynchronous one."""
    known = {"overload": "typing", "LoopThread": "muster_client.loop_thread", "Iterator": "collections.abc"}
    methods: list[ast.FunctionDef] = []
    for name in ASYNCHRONOUS:
        tree = ast.parse((CLIENT / f"{name}.py").read_text("utf-8"))
        known |= {found: f"muster_client.{name}" for one in tree.body for found in _defined(one)}
        for one in tree.body:
            if isinstance(one, ast.ImportFrom):
                known |= {alias.name: str(one.module) for alias in one.names}
            elif isinstance(one, ast.ClassDef):
                methods += [blocking(method) for method in one.body if _is_public(method)]
    code = "\n\n".join(ast.unparse(one) for one in methods)
    used = {node.id for one in methods for node in ast.walk(one) if isinstance(node, ast.Name)} | {"LoopThread"}
    imports = "".join(f"from {module} import {name}\n" for name, module in known.items() if name in used)
    body = "\n".join(f"    {line}" if line else "" for line in code.splitlines())
    return _formatted(HEAD_OF_BLOCKING + imports + HEAD_OF_CLASS + body + "\n", "blocking.py")


def _is_public(method: ast.stmt) -> bool:
    return isinstance(method, ast.AsyncFunctionDef) and not method.name.startswith("_")


def blocking(method: ast.stmt) -> ast.FunctionDef:
    """Return the blocking counterpart of an asynchronous method.

    >>> [method] = ast.parse("async def job(self, job_id: int, **more: Any) -> JobShown: pass").body
    >>> print(ast.unparse(blocking(method)))
    def job(self, job_id: int, **more: Any) -> JobShown:
        return self._run(self._client.job(job_id, **more))
    """
    assert isinstance(method, ast.AsyncFunctionDef)
    assert method.returns is not None
    returns, asked = method.returns, f"self._client.{method.name}({_passed_on(method.args)})"
    match returns:
        case ast.Subscript(value=ast.Name(id="AsyncIterator")):
            returns = ast.Subscript(ast.Name("Iterator"), returns.slice)
            answer = f"return self._iterate({asked})"
        case ast.Constant(value=None):
            answer = f"self._run({asked})"
        case _:
            answer = f"return self._run({asked})"
    body = method.body[:1]  # the docstring, or an overload's `...`
    if not any(isinstance(one, ast.Name) and one.id == "overload" for one in method.decorator_list):
        body = [*(body if ast.get_docstring(method) else []), *ast.parse(answer).body]
    made = ast.FunctionDef(method.name, method.args, body, method.decorator_list, returns)
    return ast.fix_missing_locations(made)


def _passed_on(arguments: ast.arguments) -> str:
    """Return the arguments, without `self`, for calling a method with the same signature."""
    passed = [one.arg for one in [*arguments.posonlyargs, *arguments.args][1:]]
    passed += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    passed += [f"{one.arg}={one.arg}" for one in arguments.kwonlyargs]
    passed += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return ", ".join(passed)


def _defined(statement: ast.stmt) -> list[str]:
    """Return the public names that a module-level statement defines."""
    match statement:
        case ast.ClassDef():
            found = [statement.name]
        case ast.Assign():
            found = [one.id for one in statement.targets if isinstance(one, ast.Name)]
        case _:
            found = []
    return [name for name in found if not name.startswith("_")]


def _formatted(text: str, name: str) -> str:
    """Return the source formatted and with sorted imports."""
    for command in (["check", "--quiet", "--fix-only", "--select", "I"], ["format", "--quiet"]):
        whole = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(CLIENT / name), "-"]
        done = subprocess.run(whole, input=text, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603  our own linter
        text = done.stdout
    return text


if __name__ == "__main__":
    (CLIENT / "blocking.py").write_text(blocking_module(), encoding="utf-8")
    print("client/muster_client/blocking.py")
