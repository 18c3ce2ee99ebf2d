"""LeRobot's side: suites as envs of `lerobot-eval`, and its policies under `internutopia evaluate policy`.

`lerobot-eval --env.discover_packages_path=internutopia.evaluation.lerobot --env.type=internutopia ...` imports this
package and its modules; nothing else needs the package `lerobot`.
"""
