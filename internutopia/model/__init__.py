"""Models: what a scene is made of, and how that becomes one compiled MuJoCo model."""

from internutopia.rendering.gl import check_choice

check_choice()  # before MuJoCo is imported, which says less
