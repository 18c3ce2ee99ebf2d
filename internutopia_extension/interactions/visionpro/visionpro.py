"""Steering with an Apple Vision Pro, which is not here."""

from internutopia.core.util.absent import absent

_INSTEAD = (
    'it streams to an Apple Vision Pro with the package vuer; read the poses of hands in your script and send joint '
    'targets to a JointController, or wrist poses to an InverseKinematicsController'
)

__getattr__ = absent(__name__, dict.fromkeys(('VuerTeleop', 'OpenTeleVision', 'VuerPreprocessor'), _INSTEAD))
