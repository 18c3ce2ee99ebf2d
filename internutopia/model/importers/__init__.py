"""Importers: files of MJCF, URDF and USD as specs of MuJoCo."""
