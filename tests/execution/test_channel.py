import socket

import pytest

from shoestring.execution.worker import Channel


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), Channel(theirs)


def test_messages_arrive_whole_and_in_their_order(ends):
    ours, theirs = ends
    assert list(theirs.arrived()) == []
    ours.send("a", 1)
    ours.send("b", b"x" * 50_000)
    assert list(theirs.arrived()) == [("a", 1), ("b", b"x" * 50_000)]
    theirs.send("c")
    assert ours.receive() == ("c",)


def test_half_a_message_is_none(ends):
    ours, theirs = ends
    ours.send("a", "b" * 100)
    data = theirs.socket.recv(1 << 16)
    ours.socket.sendall(data[:20])
    assert list(theirs.arrived()) == []
    ours.socket.sendall(data[20:])
    assert list(theirs.arrived()) == [("a", "b" * 100)]


def test_the_end(ends):
    ours, theirs = ends
    ours.send("last")
    ours.close()
    assert list(theirs.arrived()) == [("last",)]
    assert theirs.closed
    with pytest.raises(EOFError):
        theirs.receive()
