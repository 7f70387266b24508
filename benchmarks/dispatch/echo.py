"""Serves a fixed reply: the node's web application with a handler that only parses the request.

`python -m benchmarks.dispatch.echo --port … --reply FILE` serves until its standard input closes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import uvloop
from aiohttp import web
from lxml import etree

from runtime.compose import mounted
from runtime.worker import SHUTDOWN_S
from scheduler.handler import CONTENT_TYPE


async def serve(port: int, reply: bytes) -> None:
    """Serve on a port that other processes may share, configured as in runtime/worker.py."""

    async def echo(request: web.Request) -> web.Response:
        body = bytearray()
        async for piece in request.content.iter_any():
            body += piece
        etree.fromstring(bytes(body))
        return web.Response(body=reply, content_type=CONTENT_TYPE, charset="utf-8")

    application = mounted([web.post("/scheduler", echo)], {"/api/v1": web.Application()}, f"http://127.0.0.1:{port}/")
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_S, tcp_keepalive=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_port=True, backlog=1024).start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--reply", type=Path, required=True)
    options = parser.parse_args()
    uvloop.run(serve(options.port, options.reply.read_bytes()))


if __name__ == "__main__":
    main()
