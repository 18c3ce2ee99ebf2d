"""Models: the parts of a scene, and their composition into one compiled MuJoCo model."""

from internutopia.rendering.gl import check_choice

check_choice()  # before MuJoCo is imported, whose error is less specific
