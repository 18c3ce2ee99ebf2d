"""Terms: the small batched functions that a `LearningCfg` picks by name.

A term gets the `RobotState` of all envs and its parameters, and returns one row per env::

    @term('reward')
    def upright(state, tolerance: float = 0.3):
        return state.xp.exp(-state.xp.square(state.projected_gravity[:, :2]).sum(axis=-1) / tolerance**2)

`state.xp` has the functions for the arrays of the state, under numpy's names: those of numpy on the host, of torch on a
device. There, `env_ids` are all envs, and what a term gives for others than those it is meant for is passed over.

What it gets and returns depends on the kind:

| kind | called with | returns |
|---|---|---|
| observation | `state` | `(n, k)` or `(n,)` |
| reward | `state` | `(n,)` |
| termination | `state` | bool `(n,)` |
| metric | `state` | `(n,)`, the value for an episode that ends with this step |
| command | `state`, `env_ids` | the new commands of these envs, `(len(env_ids), k)` |
| randomization | `state`, `env_ids` | nothing; it changes these envs |
| curriculum | `state`, `env_ids` | nothing; it changes `state.levels` |

A name may be registered again; the later function counts.
"""

from internutopia.rl.terms import (
    commands,
    gait,
    manipulation,
    motion,
    observations,
    other_robots,
    randomizations,
    rewards,
    sensors,
    terminations,
)
from internutopia.rl.terms.registry import KINDS, CommandName, look_up_term, registered_terms, term

__all__ = [
    'KINDS',
    'CommandName',
    'commands',
    'gait',
    'look_up_term',
    'manipulation',
    'motion',
    'observations',
    'other_robots',
    'randomizations',
    'registered_terms',
    'rewards',
    'sensors',
    'term',
    'terminations',
]
