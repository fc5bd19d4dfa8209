"""Connections that end when the other side keeps them waiting: no one holds them, or what they hold, for ever."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


def patient_for(seconds: float) -> type[H11Protocol]:
    """HTTP/1.1 for clients that send the head of a request, and take some more of an answer, within some seconds.

    Bodies have the time of their request, and connections without a request that of keep-alive; 0: any time.
    """

    class Patient(H11Protocol):
        """Looks twice in that time: who has not moved between two looks is late."""

        _look: asyncio.TimerHandle | None = None
        _before: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._look_later()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._look is not None:
                self._look.cancel()
            super().connection_lost(exc)

        def _look_later(self) -> None:
            if seconds:
                self._look = self.loop.call_later(seconds / 2, self._looked)

        def _looked(self) -> None:
            now = self._awaited()
            if now is not None and now == self._before:
                self.transport.abort()
            else:
                self._before = now
                self._look_later()

        def _awaited(self) -> Any:
            """What the other side is to do, and how far it is; None: nothing."""
            if unsent := self.transport.get_write_buffer_size():
                return unsent
            between = self.cycle is None or self.cycle.response_complete
            return ("head", self.cycle) if between and self.timeout_keep_alive_task is None else None

    return Patient
