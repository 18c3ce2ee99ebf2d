"""Large stages that load times are measured on: small ones of the same kinds load as what they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.large_stages import write_ants, write_tea_room
from internutopia.model.importers.load import load_spec


@pytest.mark.parametrize(
    ('approximation', 'count'), [pytest.param(None, 4000, marks=pytest.mark.slow), ('convexHull', 10_000)]
)
def test_a_tea_room_has_as_many_meshes_and_triangles_as_requested(tmp_path, approximation, count):
    write_tea_room(tmp_path / 'stage.usdc', 4, count, approximation=approximation)
    model = load_spec(tmp_path / 'stage.usdc').compile()
    seen = np.flatnonzero(model.geom_group < 3)
    triangles = model.mesh_facenum[model.geom_dataid[seen]].sum()
    assert len(seen) == 4 and triangles == pytest.approx(count, rel=0.3)
    assert (model.geom_matid[seen] >= 0).all() and model.ntex == 4
    if approximation is None:
        assert model.ngeom > 4
    else:
        assert model.ngeom == 4 and model.geom_contype.all()


@pytest.mark.parametrize('count', [2, pytest.param(33, marks=pytest.mark.slow)])
def test_ants_pass_through_each_other_and_stand_on_the_ground(tmp_path: Path, count):
    write_ants(tmp_path / 'stage.usda', count)
    model = load_spec(tmp_path / 'stage.usda').compile()
    assert (model.nbody, model.njnt) == (1 + 9 * count, 9 * count)
    excluded = {tuple(sorted(divmod(int(each), 1 << 16))) for each in model.exclude_signature}

    def touch(one: str, other: str) -> bool:
        a, b = (model.geom(name).id for name in (one, other))
        bodies = tuple(sorted(int(model.geom_bodyid[each]) for each in (a, b)))
        bits = model.geom_contype[a] & model.geom_conaffinity[b] or model.geom_contype[b] & model.geom_conaffinity[a]
        return bool(bits) and bodies not in excluded

    first, last = '/World/ant_0', f'/World/ant_{count - 1}'
    assert touch(f'{first}/torso', '/World/ground') and touch(f'{last}/leg_0_1', '/World/ground')
    assert not touch(f'{first}/torso', f'{last}/leg_2_1') and not touch(f'{first}/leg_0_1', f'{last}/leg_0_1')
