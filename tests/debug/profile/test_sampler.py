"""The thread that samples the other threads of this process."""

import gc
import sys
import threading
import weakref
from types import FrameType

import trio

from wharfinger.debug.profile.profile import MAIN, OTHERS
from wharfinger.debug.profile.sampler import Sampler
from wharfinger.debug.profile.samples import ProcessorTimes, Samples


async def test_the_event_loop_continues_and_its_waiting_is_sampled() -> None:
    """The main thread waits for I/O in trio while the sampler runs, so most samples must show this wait."""
    sampler = Sampler(0.3, interval_s=0.002)
    found = await trio.to_thread.run_sync(sampler.run)
    assert found.seconds >= 0.3
    assert found.samples > 1
    waited = sum(each.seconds for each in found.stacks if each.waiting and each.thread == MAIN)
    assert waited > 0.5 * found.seconds
    assert "Sampler.run" not in {each.function for each in found.frames}, "it does not sample itself"
    assert 0 < found.sampling_cpu_s <= found.others_cpu_s


def blocked(begun: threading.Event, end: threading.Event) -> None:
    begun.set()
    end.wait()


async def test_other_threads_are_sampled() -> None:
    begun, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=blocked, args=(begun, end))
    thread.start()
    try:
        begun.wait()
        found = await trio.to_thread.run_sync(Sampler(0.05, interval_s=0.001).run)
    finally:
        end.set()
        thread.join()
    stacks = [each for each in found.stacks if each.thread == OTHERS and each.waiting]
    assert any("blocked" in {found.frames[at].function for at in each.frames} for each in stacks)


async def test_the_sampler_ends_when_it_is_stopped() -> None:
    sampler = Sampler(60.0, interval_s=0.001)
    sampler.stop()
    found = await trio.to_thread.run_sync(sampler.run)
    assert found.seconds < 30
    assert sampler.is_stopped


class Kept:
    """An object to which a frame refers."""


def test_samples_retain_no_frame() -> None:
    """A retained frame would keep the variables of its function alive."""

    def frame() -> tuple[FrameType, weakref.ref[Kept]]:
        kept = Kept()
        return sys._getframe(), weakref.ref(kept)

    samples = Samples(1)
    found, reference = frame()
    samples.add({1: found}, 0.01)
    del found
    gc.collect()
    assert reference() is None
    assert samples.profile(0.01, ProcessorTimes(0.0, 0.0, 0.0)).samples == 1


def test_no_frame_is_retained_after_a_sample() -> None:
    """A retained frame would keep the variables of its function alive."""
    begun, end = threading.Event(), threading.Event()
    references: list[weakref.ref[Kept]] = []

    def holding() -> None:
        kept = Kept()
        references.append(weakref.ref(kept))
        begun.set()
        end.wait()

    thread = threading.Thread(target=holding)
    thread.start()
    begun.wait()
    Sampler(0.02, interval_s=0.001).run()
    end.set()
    thread.join()
    gc.collect()
    assert references[0]() is None
