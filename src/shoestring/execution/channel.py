"""Messages between a coordinator and one of its workers: pickles over a socket, each after its length.

Both ends are processes of ours on the same machine, and the socket has no name that anybody else could use; nothing of this goes
to storage or over a network.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
from collections.abc import Iterator
from typing import Any

LENGTH = struct.Struct("!Q")
PIECE = 1 << 16


class Channel:
    """One end. ``closed`` once the other end is gone."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.closed = False
        self._bytes = bytearray()

    def send(self, *message: Any) -> None:
        """The whole message; raises OSError if nobody is there to take it."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self.socket.sendall(LENGTH.pack(len(data)) + data)

    def receive(self) -> Any:
        """The next message, when it comes; raises EOFError when none can come any more."""
        while (message := self._next()) is None:
            self._take(0)
            if self.closed:
                raise EOFError
        return message

    def arrived(self) -> Iterator[Any]:
        """The messages that are here as a whole; never waits. One that was not asked for stays for the next time."""
        while not self.closed and self._take(socket.MSG_DONTWAIT):
            pass
        while (message := self._next()) is not None:
            yield message

    def _take(self, flags: int) -> bool:
        """Some more bytes; False if there are none at present."""
        try:
            piece = self.socket.recv(PIECE, flags)
        except BlockingIOError:
            return False
        except OSError:  # a reset: the process was killed with something unread
            piece = b""
        self._bytes += piece
        self.closed = not piece
        return True

    def _next(self) -> Any:
        """The first message if it is here as a whole, or else None."""
        if len(self._bytes) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._bytes)
        end = LENGTH.size + length
        if len(self._bytes) < end:
            return None
        message = pickle.loads(bytes(self._bytes[LENGTH.size : end]))
        del self._bytes[:end]
        return message

    def hang_up(self) -> None:
        """Say that nothing more will come."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.socket.close()
