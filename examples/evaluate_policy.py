"""A policy of one's own on a suite of tasks: how often does it reach what it was told to touch?

`policy` goes down onto the object that the instruction names, and never takes it: it carries out no task that needs a
gripper. The same from the command line, in this folder, with a table of all episodes and confidence intervals:

    internutopia evaluate policy InternUtopia/Tabletop --policy evaluate_policy:policy --tasks press_button
"""

DOWN = [0.0, 1.0, 0.0, 0.0]  # (w, x, y, z): the gripper points to the floor
