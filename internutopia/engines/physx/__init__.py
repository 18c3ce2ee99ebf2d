"""PhysX on the CPU, by NVIDIA's package `ovphysx`."""
