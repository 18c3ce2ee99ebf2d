#!/usr/bin/env bash
# Record demonstrations, train an ACT by LeRobot's command, and evaluate it by LeRobot's command and by ours.
#
# For an environment with `lerobot` 0.6 and InternUtopia (docs/evaluation.md says how to make one), whose bin folder is
# first in PATH: too large, and too slow on a CPU, for CI. Writes to out/lerobot; STEPS updates, 4000 of which take
# a core some hours, and 20 show that the parts fit.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${STEPS:-4000} task=${TASK:-door} out=out/lerobot mapping=${MAPPING:-examples/lerobot.yaml}
policy=$out/train/checkpoints/last/pretrained_model
suite=(internutopia evaluate policy InternUtopia/Tabletop --tasks "$task" --mapping $mapping)

[ -d $out/data/meta ] || "${suite[@]}" --policy expert --first 50 --episodes 100 --only success \
  --out $out/demonstrations --overwrite --record $out/data
[ -d $out/train ] || lerobot-train --dataset.repo_id=local/data --dataset.root=$out/data --dataset.video_backend=pyav \
  --policy.type=act --policy.device=cpu --policy.push_to_hub=false --policy.pretrained_backbone_weights=null \
  --policy.chunk_size=16 --policy.n_action_steps=8 --policy.dim_model=128 --policy.n_heads=4 \
  --policy.dim_feedforward=512 --policy.n_encoder_layers=2 --policy.use_vae=false \
  --policy.optimizer_lr=3e-4 --policy.optimizer_lr_backbone=3e-4 \
  --batch_size=16 --steps="$steps" --num_workers=0 --wandb.enable=false --output_dir=$out/train
lerobot-eval --policy.path=$policy --policy.device=cpu --seed=0 --eval.n_episodes=50 --eval.batch_size=10 \
  --env.discover_packages_path=internutopia.evaluation.lerobot --env.type=internutopia \
  --env.task="$task" --env.mapping=$mapping --output_dir=$out/eval
"${suite[@]}" --policy "lerobot:$policy" --out $out/results --overwrite
python - <<EOF
import json
theirs = [each for each in json.load(open('$out/eval/eval_info.json'))['per_task'][0]['metrics']['successes']]
ours = [bool(each['success']) for each in json.load(open('$out/results/report.json'))['episodes']]
same = sum(a == b for a, b in zip(theirs, ours, strict=True))
print(f"lerobot-eval: {sum(theirs)} of {len(theirs)}; internutopia evaluate policy: {sum(ours)}; {same} alike")
EOF
