"""Reading checkpoints of rsl_rl, for which there are policy files here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(
    __name__,
    {
        'pickle': 'internutopia.rl.policy.load_policy reads policies (ONNX, TorchScript), torch.load reads checkpoints',
        'normalizer': 'a policy file holds the normalization of its observations; rsl_rl.modules has classes for it',
    },
)
