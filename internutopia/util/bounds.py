"""Bounds on values of configs: far beyond what any machine does, and far below what would take it down.

Sums and products (episodes of a run file, envs of all processes, rays of a lidar, images of all envs) have bounds as
well as the numbers themselves.
"""

MAX_COUNT = 10**15
"""Of anything that is only counted (steps, iterations); counters have 64 bits."""
MAX_SEED = 2**64 - 1
MAX_ENVS = 10**6
"""Envs, of all processes together."""
MAX_EPISODES = 10**6
"""Task configs of a run, repetitions included."""
MAX_PROCESSES = 10_000
MAX_THREADS = 4096
MAX_GPUS = 1024
"""Of one process."""
MAX_SECONDS = 86_400
"""Of an evaluation or a video: a day."""
MAX_STEP_SECONDS = 1.0
"""Of a physics step, and between two frames: a longer time was meant in milliseconds, or per second."""
MAX_SUBSTEPS = 10**5
"""Physics steps in one step of an env."""
MAX_TIMESTEPS = 10**9
"""Time steps of the engine in one step of an env: `substeps` times the parts of a physics step (`max_timestep`)."""
MAX_SOLVER_ITERATIONS = 10**6
MAX_DISTANCE = 10**6
"""Between two neighbouring envs, m."""
MAX_DELAY = 10_000
"""Age of an observation, env steps: as many are remembered."""
MAX_SIDE = 16_384
"""Width and height of an image, pixels."""
MAX_RAYS = 10**7
"""Rays of a lidar."""
MAX_LAYER = 65_536
"""Width of a layer of a network."""
MAX_LAYERS = 64
MAX_SAMPLES = 10**9
"""Steps of all envs between two updates of a policy."""
MAX_FILE = 64 * 2**20
"""Size of a YAML file, bytes."""
MAX_DEPTH = 100
"""Levels of a YAML file."""
MAX_NODES = 5 * 10**6
"""Values and keys of a YAML file, those that aliases repeat counted again."""
