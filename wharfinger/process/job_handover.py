"""The handover of requests to the slots of a pool (:mod:`wharfinger.process.worker_slot`).

A slot whose worker is running gets a request before a slot that has to start a worker. A plain channel would give each request
to the slot that waited longest. Then every slot would start a worker, even if one worker could serve all requests.

A request is handed over, never stored: its sender waits until a slot takes it, so requests do not accumulate here. If a slot
stops waiting just when it is given a request, because its worker was idle for too long, another slot takes the request.
"""

from collections import deque
from typing import Generic

import trio

from wharfinger.process.worker_slot import AnyJob


class _Waiter(Generic[AnyJob]):
    """A slot that waits for a request, or a sender that waits for a slot."""

    def __init__(self, job: AnyJob | None = None) -> None:
        self.job = job
        self.done = trio.Event()


class WarmSlot(Generic[AnyJob]):
    """The end of a handover at which slots with a running worker receive requests.

    Implements :class:`wharfinger.process.worker_slot.Jobs`.
    """

    def __init__(self, handover: "JobHandover[AnyJob]") -> None:
        self._handover = handover

    async def receive(self) -> AnyJob:
        """Return the next request. Raises trio.EndOfChannel after the close."""
        return await self._handover.receive(warm=True)


class JobHandover(Generic[AnyJob]):
    """The place where senders of requests and the slots of a pool meet: each request is passed to one slot."""

    def __init__(self) -> None:
        self.warm = WarmSlot(self)
        self._senders: deque[_Waiter[AnyJob]] = deque()
        self._slots: dict[bool, list[_Waiter[AnyJob]]] = {True: [], False: []}
        self._is_closed = False

    async def send(self, job: AnyJob) -> None:
        """Wait until a slot takes the request. If the handover is closed, report the shutdown to the request's caller
        instead.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._has_given(job):
            return
        sender = _Waiter(job)
        self._senders.append(sender)
        try:
            await sender.done.wait()
        finally:
            if sender in self._senders:
                self._senders.remove(sender)

    async def receive(self, *, warm: bool = False) -> AnyJob:
        """Return the next request. ``warm`` means that the slot has a running worker.

        A slot that has answered a request waits here again before the caller of that request continues, because there is no
        checkpoint in between. So the caller's next request is given to that slot. Raises trio.EndOfChannel after the close.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._senders:
            sender = self._senders.popleft()
            sender.done.set()
            await trio.lowlevel.cancel_shielded_checkpoint()
            if sender.job is None:
                raise AssertionError("a sender waited without a job")
            return sender.job
        if self._is_closed:
            raise trio.EndOfChannel
        slot: _Waiter[AnyJob] = _Waiter()
        self._slots[warm].append(slot)
        try:
            await slot.done.wait()
        except BaseException:
            if slot in self._slots[warm]:
                self._slots[warm].remove(slot)
            elif slot.job is not None and not self._has_given(slot.job):  # it was given a request at this moment
                self._senders.appendleft(_Waiter(slot.job))
            raise
        if slot.job is None:
            raise trio.EndOfChannel
        return slot.job

    def _has_given(self, job: AnyJob) -> bool:
        """Give a request to a waiting slot, and return True; return False if no slot waits. After `close`, shut the request
        down instead, and return True.
        """
        if self._is_closed:
            job.shut_down()
            return True
        slots = self._slots[True] or self._slots[False]
        if not slots:
            return False
        slot = slots.pop()
        slot.job = job
        slot.done.set()
        return True

    def close(self) -> None:
        """Hand over no more requests. Requests that wait for a slot are shut down, and slots that wait for a request get
        trio.EndOfChannel.
        """
        self._is_closed = True
        for sender in self._senders:
            if sender.job is not None:
                sender.job.shut_down()
            sender.done.set()
        self._senders.clear()
        for slots in self._slots.values():
            for slot in slots:
                slot.done.set()
            slots.clear()
