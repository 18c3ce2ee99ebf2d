"""Scene: access of extension classes to their env."""
