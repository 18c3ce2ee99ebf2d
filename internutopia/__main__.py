"""Command `python -m internutopia`, which is `internutopia`."""

from internutopia.cli import main

if __name__ == '__main__':
    main()
