"""The message channel between the coordinator and a worker process."""

import socket

import pytest

from shoestring.execution.worker import Channel


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), Channel(theirs)


def test_messages_arrive_complete_and_in_order(ends):
    ours, theirs = ends
    assert list(theirs.received()) == []
    ours.send("a", 1)
    ours.send("b", b"x" * 50_000)
    assert list(theirs.received()) == [("a", 1), ("b", b"x" * 50_000)]
    theirs.send("c")
    assert ours.receive() == ("c",)


def test_a_message_that_arrived_in_part_is_not_returned(ends):
    ours, theirs = ends
    ours.send("a", "b" * 100)
    data = theirs.socket.recv(1 << 16)
    ours.socket.sendall(data[:20])
    assert list(theirs.received()) == []
    ours.socket.sendall(data[20:])
    assert list(theirs.received()) == [("a", "b" * 100)]


def test_the_last_message_is_read_after_the_other_end_has_closed(ends):
    ours, theirs = ends
    ours.send("last")
    ours.close()
    assert list(theirs.received()) == [("last",)]
    assert theirs.closed
    with pytest.raises(EOFError):
        theirs.receive()
