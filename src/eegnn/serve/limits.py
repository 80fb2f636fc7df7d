"""What a client may take: bytes of a request, and time."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Limits:
    """Ends requests that are too large (413) or take too long (504), as ASGI middleware.

    The time is that from the first byte to the answer, so that a client that sends its request
    slowly holds nothing for longer either.

    Args:
        app: the application.
        max_bytes: of the body of a request.
        timeout: seconds.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, timeout: float) -> None:
        self.app, self.max_bytes, self.timeout = app, max_bytes, timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        read, started = 0, False

        async def noted(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.max_bytes:
                raise HTTPException(
                    413, f"a request must have at most {self.max_bytes:,} bytes, this one has more"
                )
            return message

        try:
            async with asyncio.timeout(self.timeout):
                await self.app(scope, limited, noted)
        except TimeoutError:
            if not started:
                text = f"the answer took more than {self.timeout:g} seconds"
                await JSONResponse({"error": text}, 504)(scope, receive, send)
