"""Clearing a task's prims, which a reset does here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(
    __name__,
    {
        'clear_stage_by_prim_path': 'Env.reset removes what ran in an env',
    },
)
