"""Mistakes that people make in the description of a policy, each undone: descriptions that might be the right one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np

from internutopia.config.learning import ObservationTermCfg
from internutopia.rl.policy import PolicyMetadata
from internutopia.rl.policy_fit import common_orders, joint_by_joint, leg_by_leg, legs_of

SIDES = 4  # of a robot, at most, whose legs are tried in every order
_COMMAND_SCALES = (1.0, [2.0, 2.0, 0.25], 0.25)  # legged_gym: obs_scales
_SCALES: Mapping[str, Sequence[float]] = {  # of inputs, as in legged_gym and Isaac Lab, or left out
    'base_angular_velocity': (1.0, 0.25, 0.2),
    'base_linear_velocity': (1.0, 2.0),
    'projected_gravity': (1.0, -1.0),
    'joint_positions': (1.0,),
    'joint_velocities': (1.0, 0.05),
    'last_action': (1.0,),
}
_STEPS = (0.005, 0.1)  # s, of a policy; physics takes at most as long
_TIMES = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)


def alternatives(metadata: PolicyMetadata, dof_names: Sequence[str]) -> dict[str, PolicyMetadata]:
    """Return descriptions in each of which one thing is otherwise, by what it is."""
    return dict(_alternatives(metadata, dof_names))


def leg_orders(metadata: PolicyMetadata, dof_names: Sequence[str]) -> dict[str, PolicyMetadata]:
    """Return descriptions with the legs in each other order, by what it is; none for a robot with more than four."""
    legs = legs_of(metadata.joint_names, dof_names)
    if len(legs) > SIDES:
        return {}
    orders = [order for sides in permutations(legs) for order in (leg_by_leg(sides), joint_by_joint(sides))]
    return {
        f'joint_names in the order {", ".join(order)}, with what is given by joint': _reordered(metadata, order)
        for order in orders
        if order != metadata.joint_names
    }


def _alternatives(metadata: PolicyMetadata, dof_names: Sequence[str]) -> Iterator[tuple[str, PolicyMetadata]]:
    for factor in _TIMES:
        yield f'scale times {factor:g}', metadata.update(scale=_times(metadata.scale, factor))
    yield from _gains(metadata)
    for factor in (0.25, 0.5, 2.0, 4.0):
        step_dt = metadata.step_dt * factor
        if _STEPS[0] <= step_dt <= _STEPS[1]:
            yield f'step_dt: {step_dt:.4g} (times {factor:g})', metadata.update(step_dt=step_dt)
    for name, order in common_orders(metadata.joint_names, dof_names).items():
        if order != metadata.joint_names:
            yield f'joint_names {name}, with what is given by joint: {", ".join(order)}', _reordered(metadata, order)
            yield f'joint_names {name}, and all else as it is: {", ".join(order)}', _renamed(metadata, order)
    yield from _observations(metadata)


def _gains(metadata: PolicyMetadata) -> Iterator[tuple[str, PolicyMetadata]]:
    gains = {name: value for name in ('stiffness', 'damping') if (value := getattr(metadata, name)) is not None}
    if not gains:
        return
    yield f'no {" and ".join(gains)}: those of the robot', metadata.update(**dict.fromkeys(gains))
    for factor in (0.1, 0.5, 2.0, 10.0):
        parts = [gains, *({name: value} for name, value in gains.items())] if len(gains) > 1 else [gains]
        for part in parts:
            changed = {name: _times(value, factor) for name, value in part.items()}
            yield f'{" and ".join(part)} times {factor:g}', metadata.update(**changed)


def _observations(metadata: PolicyMetadata) -> Iterator[tuple[str, PolicyMetadata]]:
    terms = metadata.observations
    for one, other in combinations(range(len(terms)), 2):
        swapped = list(terms)
        swapped[one], swapped[other] = terms[other], terms[one]
        name = f'observations: {terms[one].term} and {terms[other].term} swapped'
        yield name, metadata.update(observations=swapped)
    for index, cfg in enumerate(terms):
        for scale in _COMMAND_SCALES if cfg.term == 'command' else _SCALES.get(cfg.term, ()):
            if scale != cfg.scale:
                changed = _with(terms, index, cfg.update(scale=scale))
                yield f'observations: scale {scale} of {cfg.term}', metadata.update(observations=changed)
        if cfg.term == 'joint_positions':
            relative = not cfg.params.get('relative', False)
            changed = _with(terms, index, cfg.update(params=cfg.params | {'relative': relative}))
            name = f'observations: joint_positions with relative: {str(relative).lower()}'
            yield name, metadata.update(observations=changed)


def _with(terms: Sequence[ObservationTermCfg], index: int, cfg: ObservationTermCfg) -> list[ObservationTermCfg]:
    return [*terms[:index], cfg, *terms[index + 1 :]]


def _times(value: Any, factor: float) -> Any:
    return (np.asarray(value) * factor).tolist()


def _reordered(metadata: PolicyMetadata, order: list[str]) -> PolicyMetadata:
    """Return the description with the joints in another order, each with its own numbers."""
    places = [metadata.joint_names.index(name) for name in order]
    values = {name: getattr(metadata, name) for name in ('offset', 'scale', 'stiffness', 'damping')}
    changed = {name: [value[i] for i in places] for name, value in values.items() if isinstance(value, list)}
    return _renamed(metadata, order).update(**changed)


def _renamed(metadata: PolicyMetadata, order: list[str]) -> PolicyMetadata:
    """Return the description with the names of the joints in another order, and the numbers as they are."""
    names = dict(zip(metadata.joint_names, order, strict=True))
    observations = [
        cfg.update(params=cfg.params | {'joints': [names.get(joint, joint) for joint in cfg.params['joints']]})
        if 'joints' in cfg.params
        else cfg
        for cfg in metadata.observations
    ]
    return metadata.update(joint_names=order, observations=observations)
