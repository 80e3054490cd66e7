"""A CPU profile with fixed numbers, for tests of its formats."""

from wharfinger.debug.profile.profile import MAIN, OTHERS, FrameSnapshot, ProfileSnapshot, StackSnapshot

FRAMES = (
    FrameSnapshot("run", "trio/_core/_run.py", 10),
    FrameSnapshot("EpollIOManager.get_events", "trio/_core/_io_epoll.py", 243),
    FrameSnapshot("Worker.step", "wharfinger/queue/worker.py", 20),
    FrameSnapshot("Worker.step", "wharfinger/queue/worker.py", 25),
    FrameSnapshot("loads", "json/__init__.py", 300),
    FrameSnapshot("read;all", "wharfinger/kube/names.py", 7),
)
PROFILE = ProfileSnapshot(
    seconds=10.0,
    samples=900,
    threads=2,
    frames=FRAMES,
    stacks=(
        StackSnapshot(MAIN, (0, 1), 7.5, 700, waiting=True),
        StackSnapshot(MAIN, (0, 2, 4), 1.5, 120),
        StackSnapshot(MAIN, (0, 2, 3), 0.75, 60),
        StackSnapshot(OTHERS, (5,), 0.5, 40),
        StackSnapshot(MAIN, (0,), 0.25, 20),
    ),
    main_cpu_s=2.25,
    others_cpu_s=0.5,
    sampling_cpu_s=0.1,
)
