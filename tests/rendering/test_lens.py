"""Lenses: pixels of points by formulas written out here, rays back, and pictures of known points."""

from __future__ import annotations

import numpy as np
import pytest

from internutopia.rendering.camera import BACKGROUND, Frame
from internutopia_extension.sensors.camera_optics import Lens, sample

SIZE = (160, 120)
PLAIN = Lens(SIZE, (100.0, 110.0), (85.0, 55.0))
BROWN = Lens(SIZE, (100.0, 110.0), (85.0, 55.0), 'brown_conrady', (-0.25, 0.08, 0.001, -0.002, -0.01))
FISHEYE = Lens(SIZE, (90.0, 90.0), (80.0, 60.0), 'kannala_brandt', (0.03, -0.01, 0.002, -0.0005))
POINT = np.array([0.3, -0.2, 1.0]) * 2.5  # x to the right, y down, z ahead


def test_pixels_of_a_point_are_those_of_the_formulas():
    x, y = 0.3, -0.2
    assert PLAIN.project(POINT) == pytest.approx([100 * x + 85, 110 * y + 55])
    k1, k2, p1, p2, k3 = BROWN.coefficients
    r2 = x * x + y * y
    radial = 1 + k1 * r2 + k2 * r2**2 + k3 * r2**3
    u = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    v = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
    assert BROWN.project(POINT) == pytest.approx([100 * u + 85, 110 * v + 55])
    k1, k2, k3, k4 = FISHEYE.coefficients
    angle = np.arctan(np.sqrt(r2))
    bent = angle * (1 + k1 * angle**2 + k2 * angle**4 + k3 * angle**6 + k4 * angle**8) / np.sqrt(r2)
    assert FISHEYE.project(POINT) == pytest.approx([90 * x * bent + 80, 90 * y * bent + 60])


@pytest.mark.parametrize('lens', [PLAIN, BROWN, FISHEYE])
def test_rays_of_pixels_lead_back_to_them(lens):
    rays = lens.rays
    assert np.isfinite(rays).all()
    found = lens.project(np.dstack([rays, np.ones(rays.shape[:2])]))
    u, v = np.meshgrid(np.arange(SIZE[0]) + 0.5, np.arange(SIZE[1]) + 0.5)
    np.testing.assert_allclose(found, np.dstack([u, v]), atol=1e-6)


def test_a_fisheye_is_dark_where_it_shows_no_ray():
    lens = Lens(SIZE, (40.0, 40.0), (80.0, 60.0), 'kannala_brandt')
    size, fovy = lens.source
    source, frame = Frame.blank(size, ('rgba', 'depth', 'labels')), Frame.blank(SIZE, ('rgba', 'depth', 'labels'))
    assert source.rgba is not None and frame.rgba is not None and frame.depth is not None and frame.labels is not None
    source.rgba[:], source.depth[:] = 200, 3.0  # type: ignore[index]
    sample(lens, source, frame, fovy)
    assert frame.rgba[60, 80].tolist() == [200] * 4 and frame.depth[60, 80] == 3.0 and frame.labels[60, 80] == 0
    edge = 40.0 * np.radians(80)  # pixels from the middle, at 80 degrees
    assert frame.rgba[60, int(80 + edge) - 1, 0] == 200
    assert frame.rgba[60, int(80 + edge) + 1].tolist() == [0, 0, 0, 255]
    assert np.isinf(frame.depth[0, 0]) and frame.labels[0, 0] == BACKGROUND


@pytest.mark.slow
def test_a_distortion_that_folds_over_in_the_picture_is_an_error():
    with pytest.raises(ValueError, match=r'at pixel \(0, 0\) of 160 x 120: the distortion folds over'):
        _ = Lens(SIZE, (60.0, 60.0), (80.0, 60.0), 'brown_conrady', (-0.4,)).rays


def test_a_plain_lens_needs_no_other_picture():
    lens = Lens.of_fovy(60.0, SIZE)
    assert lens.is_plain and lens.source == (SIZE, pytest.approx(60.0))
    assert not PLAIN.is_plain
