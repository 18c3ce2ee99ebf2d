"""`omni.replicator.core`: a frame on demand."""

from __future__ import annotations

from internutopia.core.scene.scene import IScene


class Orchestrator:
    """Orchestrator of frames on demand."""

    def step(
        self, rt_subframes: int = -1, pause_timeline: bool = True, delta_time: float | None = None, **options: object
    ) -> None:
        """Let all cameras of all envs show the present when they are read next; physics does not advance.

        Without this, observations hold the picture of the last frame (`SimConfig.rendering_interval`); a camera that is
        read itself (`robot.sensors[name].get_data()`, `ICamera`) always shows the present.

        Args:
            rt_subframes: Accepted: each picture here is complete.
            pause_timeline: Accepted.
            delta_time: 0 or None.
            **options: Accepted.

        Raises:
            ValueError: `delta_time` is something else: time passes in `Env.step` alone.
        """
        if delta_time:
            raise ValueError(f'orchestrator.step: delta_time must be 0, got {delta_time}; time passes in Env.step')
        for scene in IScene.all():
            scene.world.frame_due = True
            scene.batches.forget(scene.env_id)


orchestrator = Orchestrator()


def set_global_seed(seed: int) -> None:
    """Accepted: the randomizers of Replicator, which it seeds, are not here."""
