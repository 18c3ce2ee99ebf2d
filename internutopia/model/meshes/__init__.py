"""Meshes: files, surfaces, convex decomposition, images."""
