"""Settings of training a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from internutopia.config.base import BaseCfg, Count, NonNegativeFloat, PathStr, PositiveFloat, Share
from internutopia.util.bounds import MAX_ENVS, MAX_LAYER, MAX_LAYERS, MAX_SAMPLES


class TrainingCfg(BaseCfg):
    """PPO (Schulman et al. 2017) as rsl_rl does it. The defaults let a humanoid walk on flat ground."""

    env_num: Count = Field(default=512, le=MAX_ENVS)
    """Number of envs, of each process that learns (`--nproc`); also called `num_envs`. With more of them an update is
    better, and there are fewer for as many env steps: walking is learned in 1.6 times as many of those with 1024 envs,
    which only pays where envs cost little, such as on a GPU."""
    iterations: Count = 1400
    """Number of updates of the networks."""
    num_steps: Count = 24
    """Env steps between two updates."""
    hidden_dims: tuple[Annotated[Count, Field(le=MAX_LAYER)], ...] = Field(
        default=(256, 128, 64), max_length=MAX_LAYERS
    )
    """Widths of the hidden layers, of the policy and of the critic."""
    init_std: PositiveFloat = 0.6
    """Standard deviation of the actions at the start."""
    normalize: bool = True
    """True to normalize observations by their running mean and deviation."""
    epochs: Count = 5
    """Number of passes of an update over its data."""
    mini_batches: Count = 4
    """Number of parts that the data of an update are cut into."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate; the initial one if there is a `desired_kl`."""
    desired_kl: PositiveFloat | None = 0.01
    """Target KL divergence of an update, which the learning rate adapts to; None keeps the learning rate."""
    gamma: Share = 0.99
    """Discount per step."""
    gae_lambda: Share = 0.95
    """Decay of the advantage estimate per step."""
    entropy: NonNegativeFloat = 0.003
    """Weight of the entropy bonus."""
    explore: Share = 0.6
    """Share of the updates with the entropy bonus; later ones refine the policy, by smaller and smaller steps
    if there is a `desired_kl`."""
    mirror_samples: bool = False
    """True to learn from every sample a second time, left and right swapped: for symmetric robots and tasks."""
    start_from: PathStr | None = None
    """ONNX file of the initial policy, with the same actions and layers, and the same observations or the first of
    them; None means a random one."""
    critic_first: NonNegativeInt = 0
    """Number of updates at the start in which only the critic learns, so that its values fit a policy that is better
    than random."""
    save_every: Count = 25
    """Updates between two checkpoints."""
    compiled: bool | Literal['auto'] = 'auto'
    """`LearningCfg.compiled` of the envs; `'auto'` keeps that of the task. True needs llvmlite, and an engine on the
    CPU."""
    mixed_precision: bool = False
    """True to compute updates in bfloat16: faster on processors (AVX-512 BF16, AMX) and GPUs that have it, slower on
    others, and less precise. Policies always run in float32."""
    logger: Literal['tensorboard', 'wandb'] = 'tensorboard'
    """Log writer of the curves, in addition to `progress.csv`: files for TensorBoard, or these and Weights & Biases."""
    wandb_project: str = 'internutopia'
    """Project of Weights & Biases that runs are in."""

    @model_validator(mode='before')
    @classmethod
    def _read_other_name(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and 'num_envs' in values:
            return {
                **{name: value for name, value in values.items() if name != 'num_envs'},
                'env_num': values['num_envs'],
            }
        return values

    @property
    def num_envs(self) -> int:
        """Another name of `env_num`, that of learning libraries and of older run folders."""
        return self.env_num

    @model_validator(mode='after')
    def _check_sizes(self) -> Self:
        if not self.hidden_dims:
            raise ValueError('hidden_dims must have the width of one hidden layer at least')
        if (samples := self.env_num * self.num_steps) > MAX_SAMPLES:
            raise ValueError(
                f'num_steps={self.num_steps} of env_num={self.env_num} are {samples} samples between two updates; '
                f'there may be {MAX_SAMPLES}'
            )
        if self.mini_batches > samples:
            raise ValueError(
                f'mini_batches={self.mini_batches} cannot be made of the {samples} samples between two updates '
                f'(num_steps={self.num_steps} of env_num={self.env_num})'
            )
        return self

    def rsl_rl(self) -> dict[str, Any]:
        """Return these settings in the form that rsl_rl takes."""
        model = {
            'class_name': 'MLPModel',
            'hidden_dims': list(self.hidden_dims),
            'activation': 'elu',
            'obs_normalization': self.normalize,
        }
        gaussian = {'class_name': 'GaussianDistribution', 'init_std': self.init_std, 'std_type': 'log'}
        return {
            'num_steps_per_env': self.num_steps,
            'save_interval': self.save_every,
            'logger': self._logger(),
            'obs_groups': {'actor': ['policy'], 'critic': ['critic']},
            'actor': model | {'distribution_cfg': gaussian},
            'critic': model,
            'algorithm': {
                'class_name': 'internutopia.rl.training.ppo:BoundedPPO',
                'num_learning_epochs': self.epochs,
                'num_mini_batches': self.mini_batches,
                'learning_rate': self.learning_rate,
                'schedule': 'fixed' if self.desired_kl is None else 'adaptive',
                'desired_kl': self.desired_kl,
                'gamma': self.gamma,
                'lam': self.gae_lambda,
                'entropy_coef': self.entropy,
                'clip_param': 0.2,
                'max_grad_norm': 1.0,
                'use_mixed_precision': self.mixed_precision,
            },
        }

    def _logger(self) -> str | dict[str, str]:
        if self.logger == 'tensorboard':
            return self.logger
        writer = 'internutopia.rl.training.rsl_rl:WandbWriter'
        return {'class_name': writer, 'project_name': self.wandb_project}
