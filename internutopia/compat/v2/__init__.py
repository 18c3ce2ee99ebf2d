"""InternUtopia 2.x: all that only scripts and packages for it need.

`conventions` has the behaviour of a run with the switch, `gone` the names that are not here. `core_util` and `handles`
are what scripts import by paths below `internutopia.core`, where thin modules lead here.
"""
