"""Compiled terms: what terms compute in a step as machine code, by LLVM.

Terms are traced (`traced.py`): they are called once with a state (`state.py`) whose arrays note what is done to them
(`nodes.py`), and what comes out is written as a function that runs over envs (`kernel.py`). Nothing is translated from
Python: numpy's own indexing, broadcasting and rules of types make the trace.
"""
