"""Camera geometry: poses, projection, and the arrays that images are written to.

Camera frames are those of USD and OpenGL: a camera faces -z, +y is up in the image. Pixels are square, row 0 is the
top row, and pixel `(u, v)` covers `[u, u + 1) x [v, v + 1)`: its centre is at `u + 0.5, v + 0.5`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import mujoco

Colour = tuple[float, float, float, float]

_LEVEL = np.eye(3).ravel()
_CENTRING = 30  # iterations; each one at least halves what is off where depths are alike


@dataclass(frozen=True)
class Marker:
    """A ball, or an arrow if it has a `tip`.

    `position` and `tip` `(3,)` [m] are in the env frame, `radius` [m] is that of the ball or of the arrow's shaft,
    `colour` is red, green, blue and opacity, 0 to 1.
    """

    position: Floats
    radius: float
    colour: Colour
    tip: Floats | None = None


def add_markers(scene: mujoco.MjvScene, markers: Sequence[Marker]) -> None:
    """Append markers to a scene, as far as there is room; label images do not show them."""
    import mujoco  # here: descriptions of images do without

    for marker in markers[: scene.maxgeom - scene.ngeom]:
        geom = scene.geoms[scene.ngeom]
        kind = mujoco.mjtGeom.mjGEOM_SPHERE if marker.tip is None else mujoco.mjtGeom.mjGEOM_ARROW
        size = np.full(3, marker.radius)
        colour = np.array(marker.colour, np.float32)
        mujoco.mjv_initGeom(geom, kind, size, np.asarray(marker.position, np.float64), _LEVEL, colour)
        if marker.tip is not None:
            mujoco.mjv_connector(geom, kind, marker.radius, marker.position, marker.tip)
        geom.segid = -1
        scene.ngeom += 1


Floats = NDArray[np.float64]
Quality = Literal['plain', 'fast', 'full']
Layer = Literal['all', 'still', 'moving']
PictureKind = Literal['rgba', 'depth', 'labels', 'occlusion']

NEAR, FAR = 0.01, 1e4  # m: what is nearer or farther is not seen
NO_COLOUR = np.array([0.5, 0.5, 0.5, 1.0], np.float32)  # of a geom that has none: that of its material counts
UNLABELLED, BACKGROUND = -1, -2  # in label images: where something has none, and where nothing is
APERTURE = 0.020955  # m, width of the film of a camera that names none: the default of `UsdGeomCamera`


@dataclass(frozen=True)
class Intrinsics:
    """A projection without distortion.

    `half_width` and `half_height` are those of the image, `centre` is its middle relative to the camera's axis (to
    the right, up): at distance 1 from the camera (dimensionless), or, if `orthographic`, everywhere [m]. `aperture` is
    the width of the film [m], which images do not depend on.
    """

    half_width: float
    half_height: float
    orthographic: bool = False
    aperture: float = APERTURE
    centre: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of_height(cls, half_height: float, size: tuple[int, int], orthographic: bool = False) -> Intrinsics:
        """Return the intrinsics of an image of `size` (width, height) [pixels] that shows this much vertically."""
        return cls(half_height * size[0] / size[1], half_height, orthographic)

    @classmethod
    def of_width(cls, half_width: float, size: tuple[int, int], aperture: float = APERTURE) -> Intrinsics:
        """Return the intrinsics of an image of `size` (width, height) [pixels] that shows this much horizontally."""
        return cls(half_width, half_width * size[1] / size[0], aperture=aperture)

    @property
    def focal_length(self) -> float:
        """Focal length [m]; of an orthographic one, what `Intrinsics.aperture` counts for at distance 1."""
        return self.aperture / (2.0 * self.half_width)

    def pixels(self, size: tuple[int, int], shift: tuple[float, float] = (0.0, 0.0)) -> tuple[Floats, Floats]:
        """Return the centres of pixels, x of columns `(width,)` and y of rows `(height,)`, in units of `half_width`.

        Or, not the centres, but what is `shift` pixels to the right of them and below.
        """
        width, height = size
        x = ((np.arange(width) + 0.5 + shift[0]) * 2.0 / width - 1.0) * self.half_width + self.centre[0]
        y = (1.0 - (np.arange(height) + 0.5 + shift[1]) * 2.0 / height) * self.half_height + self.centre[1]
        return x, y

    def crop(self, low: tuple[float, float], high: tuple[float, float]) -> Intrinsics:
        """Return the intrinsics of a part of the image; corners from (-1, -1), left and bottom, to (1, 1)."""
        half = self.half_width, self.half_height
        centre = [c + 0.5 * (a + b) * h for c, a, b, h in zip(self.centre, low, high, half, strict=True)]
        width, height = (0.5 * (b - a) * h for a, b, h in zip(low, high, half, strict=True))
        return replace(self, half_width=width, half_height=height, centre=(centre[0], centre[1]))


def rotation_towards(target: Any, position: Any, up: Sequence[float] = (0.0, 0.0, 1.0)) -> Floats:
    """Return the rotation `(3, 3)` of a camera at `position` [m] facing `target` [m], with `up` upwards in the image.

    Its columns are right, up and back; with a direction along `up`, y is upwards in the image.
    """
    back = np.asarray(position, np.float64) - np.asarray(target, np.float64)
    back /= np.linalg.norm(back)
    right = np.cross(up, back)
    if not right.any():
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return np.column_stack([right, np.cross(back, right), back])


@dataclass(frozen=True)
class CameraPose:
    """A camera in the frame of an env: `position` `(3,)` [m], `rotation` `(3, 3)` with the columns right, up, back.

    With `cutaway`, rooms that it is above of are shown without their ceiling and what is above that.
    """

    position: Floats
    rotation: Floats
    intrinsics: Intrinsics
    cutaway: bool = False

    @classmethod
    def looking_at(cls, target: Any, position: Any, intrinsics: Intrinsics) -> CameraPose:
        """Return the pose at `position` [m] facing `target` [m], with the z axis upwards in the image."""
        return cls(np.asarray(position, np.float64), rotation_towards(target, position), intrinsics)

    @classmethod
    def framing(cls, points: Floats, towards: Floats, intrinsics: Intrinsics, room: float = 1.0) -> CameraPose:
        """Return the nearest pose with all `points` `(n, 3)` [m] in the image.

        Args:
            points: the points.
            towards: direction `(3,)` in which the camera is, seen from them.
            intrinsics: with the camera's axis in the middle of the image.
            room: around the points, as a multiple of their size.
        """
        rotation = rotation_towards(np.zeros(3), towards)
        right, up, back = (points @ rotation).T
        widths = intrinsics.half_width / room, intrinsics.half_height / room
        # of the planes in which the borders of the image are, those that touch the points: x + width z at the camera
        ends = [((axis + width * back).max(), (width * back - axis).max())
                for axis, width in zip((right, up), widths, strict=True)]  # fmt: skip
        distance = max((high + low) / (2.0 * width) for (high, low), width in zip(ends, widths, strict=True))
        middle, depths = np.array([0.5 * (high - low) for high, low in ends]), (distance - back).clip(min=1e-9)
        for _ in range(_CENTRING):  # where there is more room than needed, it should be the same on both sides
            seen = (np.stack([right, up]) - middle[:, None]) / depths
            middle += 0.5 * depths.min() * (seen.max(axis=1) + seen.min(axis=1))
        return cls(rotation @ np.array([*middle, distance]), rotation, intrinsics)

    def project(self, points: Floats) -> tuple[Floats, Floats]:
        """Project points `(..., 3)` [m] to the image `(..., 2)`, as in `Intrinsics.crop`; also returns depths [m]."""
        intrinsics = self.intrinsics
        right, up, back = np.moveaxis((points - self.position) @ self.rotation, -1, 0)
        scale = 1.0 if intrinsics.orthographic else -back
        x = (right / scale - intrinsics.centre[0]) / intrinsics.half_width
        y = (up / scale - intrinsics.centre[1]) / intrinsics.half_height
        return np.stack([x, y], axis=-1), -back

    def points(self, depth: NDArray[Any]) -> Floats:
        """Return the points `(height, width, 3)` [m] that a depth image shows; those at infinity are nan."""
        rows, columns = (np.asarray(index, np.intp) for index in np.indices(depth.shape))
        return self.points_at(rows, columns, depth, (depth.shape[1], depth.shape[0]))

    def points_at(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], depth: NDArray[Any], size: tuple[int, int]
    ) -> Floats:
        """Return the points `(..., 3)` [m] at pixels of an image of `size` [pixels] that have this depth `(...)`."""
        x, y = self.intrinsics.pixels(size)
        ahead = np.where(np.isfinite(depth), depth, np.nan).astype(np.float64)
        scale = 1.0 if self.intrinsics.orthographic else ahead
        local = np.stack([x[columns] * scale + 0.0 * ahead, y[rows] * scale + 0.0 * ahead, -ahead], axis=-1)
        return local @ self.rotation.T + self.position

    def moved(self, offset: Any) -> CameraPose:
        """Return the same camera, moved this far along the axes of the env [m]."""
        return replace(self, position=self.position + np.asarray(offset))


@dataclass(frozen=True)
class Frame:
    """Output arrays of an image, given by the caller, rows from the top; None for kinds that are not rendered.

    `rgba` `(height, width, 4)` uint8; `depth` `(height, width)` float32, distance along the viewing direction [m],
    infinite where nothing is; `labels` `(height, width)` int32, index into the things of `World.labels`, `UNLABELLED`
    or `BACKGROUND`; `occlusion` `(height, width)` float32, with labels only: of the thing that a pixel shows, which
    share of its pixels others hide, nan where no labelled thing is. With one more axis in front they hold an image of
    each env.

    `bounds` `(4,)` are first and last row and first and last column, the last ones not included, of what was written:
    with the layer `'moving'` that is no more than is needed; of others it is zero.
    """

    rgba: NDArray[np.uint8] | None = None
    depth: NDArray[np.float32] | None = None
    labels: NDArray[np.int32] | None = None
    occlusion: NDArray[np.float32] | None = None
    bounds: NDArray[np.intp] = field(default_factory=lambda: np.zeros(4, np.intp))

    @classmethod
    def blank(cls, size: tuple[int, int], kinds: Collection[PictureKind], *leading: int) -> Frame:
        """Return a frame for images of `size` (width, height) [pixels]; memory is allocated when it is written to."""
        shape = (*leading, size[1], size[0])
        return cls(
            np.zeros((*shape, 4), np.uint8) if 'rgba' in kinds else None,
            np.zeros(shape, np.float32) if 'depth' in kinds else None,
            np.zeros(shape, np.int32) if 'labels' in kinds else None,
            np.zeros(shape, np.float32) if 'occlusion' in kinds else None,
        )

    @property
    def pictures(self) -> dict[PictureKind, NDArray[Any]]:
        """Arrays that are not None, by kind."""
        pictures = {kind: getattr(self, kind) for kind in get_args(PictureKind)}
        return {kind: picture for kind, picture in pictures.items() if picture is not None}

    @property
    def size(self) -> tuple[int, int]:
        """Width and height [pixels]."""
        kind, array = next(iter(self.pictures.items()))
        height, width = array.shape[-3:-1] if kind == 'rgba' else array.shape[-2:]
        return width, height

    def row(self, index: int) -> Frame:
        """Return the frame of one env."""
        return Frame(**{kind: picture[index] for kind, picture in self.pictures.items()})


@dataclass(frozen=True)
class RenderRequest:
    """One image of one env, with markers, env frame.

    A `layer` is a part of what is there: what is fixed to the world and the sky, `'still'`, or the rest, `'moving'`, of
    which one sees what is nearer than the still layer's depth. What is `'still'` and transparent is there in colour
    alone, since one sees through it. What is `'moving'` has no more detail than pixels can show: round things of less
    than 4 pixels are boxes, and less than a pixel is left out next to larger things. Layers are for `'fast'` pictures:
    in others things cast shadows on each other.
    """

    env_id: int
    camera_pose: CameraPose
    frame: Frame
    markers: Sequence[Marker] = ()
    layer: Layer = 'all'


def half_angle(fovy: float) -> float:
    """Return `Intrinsics.half_height` of a vertical field of view [degrees]."""
    return math.tan(0.5 * math.radians(fovy))
