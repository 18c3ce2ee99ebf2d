"""InternUtopia 2.x: all that only scripts and packages for it need.

`gone` says what is not here. `specs`, `actions`, `envs` and `runs` are the behaviour of a run with
`Config.compat='2.x'` or `INTERNUTOPIA_COMPAT=2.x`, each for the part of the run that uses it (fields of configs:
`internutopia.config.compat`):

- a finished env reports `terminated=True`, `reward=-1`, `truncated=False`, and None as observation and info;
- an env whose task has no reward reports -1 (`gym_env.Env`: 0.0, as there in 2.x);
- unknown robots and controllers in actions, and unknown fields of a `SimConfig`, are ignored with one warning each;
- a bad env id in `reset` gives None, and no episode is taken for it;
- metrics do not see the step that ends their episode;
- an env whose physics diverges is truncated, and not terminated;
- the USD file of a scene, robot or object with a scale other than 1 is taken in raw lengths times that scale;
- modules of Isaac Sim that packages for 2.x import are there (`internutopia.compat`);
- results are an episode's metrics and nothing else, in a file that is emptied when the run starts; a run with
  `resume=True`, which 2.x had not, writes what it writes without the switch;
- observations of `gym_env.Env` are those of the robot as they are, of each episode;
- the joints of robots come in the order of Isaac Sim, and packaged models have those joints only that the asset of
  2.x has;
- a distributed `vec_env.Env` has no `runner`, `simulation_app`, `get_dt` and `finished` (NotImplementedError), and
  its workers reserve no GPUs for physics on the CPU.

Nothing else changes. The table for users is in `docs/porting.md`.

The other modules are what scripts of 2.x import by paths below `internutopia.core`, where thin modules lead here:
`joints`, `joint_order`, `quaternions`, `colliders`, `handles`.
"""
