"""Contacts of feet: a robot that lands on a thin floor stays on it."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from internutopia.model.compose import compose
from internutopia.model.spec import RobotSpec, SceneSpec

FLOOR = '<worldbody><geom type="box" size="2 2 0.05" pos="0 0 -0.05"/></worldbody>'
RADIUS, DROP, MASS = 0.02, 0.1, 60.0  # of a foot [m], how far the robot falls [m], kg
SPEED = (2 * 9.81 * DROP) ** 0.5


def robot(solref: str = '') -> str:
    """A weight on one foot, of two capsules side by side."""
    foot = f'<geom type="capsule" size="{RADIUS}" fromto="-0.1 {{y}} 0 0.1 {{y}} 0" {solref}/>'
    return f"""<worldbody><body name="foot" pos="0 0 {RADIUS + DROP}"><freejoint/>
      {foot.format(y=0.05)}{foot.format(y=-0.05)}
      <geom name="shin" type="sphere" size="0.05" pos="0 0 0.3" mass="{MASS}"/></body></worldbody>"""


def compiled(folder: Path, text: str, feet: tuple[str, ...]) -> mujoco.MjModel:
    files = []
    for name, content in (('floor', FLOOR), ('robot', text)):
        files.append(folder / f'{name}.xml')
        files[-1].write_text(f'<mujoco>{content}</mujoco>')
    body = RobotSpec(name='robot', asset=str(files[1]), contact_links=feet)
    return compose(SceneSpec(asset=str(files[0]), robots=(body,)), timestep=0.005).compile()


def landed(model: mujoco.MjModel) -> tuple[float, float]:
    """How deep the soles sink in [m], and where they are after a second."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    lowest = np.inf
    for _ in range(200):
        mujoco.mj_step(model, data)
        lowest = min(lowest, data.qpos[2] - RADIUS)
    return -lowest, data.qpos[2] - RADIUS


def test_a_foot_that_lands_sinks_in_by_less_than_its_radius(tmp_path: Path) -> None:
    soft, _ = landed(compiled(tmp_path, robot(), ()))
    stiff, rest = landed(compiled(tmp_path, robot(), ('foot',)))
    # a critically damped contact with a time constant T: v T / e, and less at a coarse time step
    assert soft == pytest.approx(SPEED * 0.02 / np.e, rel=0.5)
    assert stiff < 0.7 * soft and stiff < RADIUS
    assert abs(rest) < 0.002


def test_an_asset_that_sets_its_contacts_keeps_them(tmp_path: Path) -> None:
    own = compiled(tmp_path, robot('solref="0.03 1.2"'), ('foot',))
    capsules = own.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE
    np.testing.assert_array_equal(own.geom_solref[capsules], [[0.03, 1.2]] * 2)
    np.testing.assert_array_equal(own.geom_solmix[capsules], 1.0)


def test_feet_alone_are_stiff(tmp_path: Path) -> None:
    model = compiled(tmp_path, robot().replace('mass="60.0"', 'mass="60.0" contype="0" conaffinity="0"'), ('foot',))
    capsules = model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE
    np.testing.assert_array_equal(model.geom_solref[capsules], [[0.01, 1.0]] * 2)
    np.testing.assert_array_equal(model.geom_solref[~capsules], [[0.02, 1.0]] * 2)
