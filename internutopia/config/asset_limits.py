"""Config of the largest model files, and of the time and memory that reading them may take."""

from typing import Self

from internutopia.config.base import BaseCfg
from internutopia.config.fields import Count, PositiveFloat


class AssetLimitsCfg(BaseCfg):
    """Limits on model files (scenes, robots, objects); a file beyond one is an error that names the file and the limit.

    Sizes are checked before MuJoCo's and USD's readers open a file. `time` and `memory` are for files of unknown
    origin: with one of them, files are first read and compiled in a process of its own, so that one that hangs or
    crashes a reader is an error, too. Isaac Sim, which reads files itself, has no limits.
    """

    time: PositiveFloat | None = None
    """Time that reading and compiling the files of a task may take in a process of its own, s; with the decomposition
    of concave meshes, if that is not cached. None is no limit."""
    memory: Count | None = None
    """Memory that this process may take, bytes, beyond what it has from the start. None is no limit; only on Linux."""
    file_size: Count = 4 * 2**30
    """Size of a file, bytes."""
    text_size: Count = 512 * 2**20
    """Size of a file of XML (MJCF, URDF, DAE) or of an OBJ mesh, bytes; in memory they are many times as large."""
    depth: Count = 1000
    """Nesting depth of XML elements, prims and links of a robot."""
    elements: Count = 1_000_000
    """XML elements of an MJCF, URDF or DAE file."""
    copies: Count = 50_000
    """Elements that `replicate`, `attach` and `flexcomp` in an MJCF file, and in the models it attaches, expand to."""
    prims: Count = 1_000_000
    """Prims of a USD stage, with those that references and instancers bring."""
    pixels: Count = 2**27
    """Pixels of an image, points of a height field, numbers that an MJCF file sets aside (`size`)."""

    @property
    def own_process(self) -> bool:
        """True if files are first read in a separate process."""
        return self.time is not None or self.memory is not None

    def of_sizes(self) -> Self:
        """Return the limits without `time` and `memory`: only those on sizes."""
        return self.update(time=None, memory=None)
