"""Server of `internutopia serve`: sessions of many users, each with its envs in a separate process.

`serve` runs it, `app` assembles it, `routes` has the routes, `middleware` checks access, `connection` limits
the time of a client. Behind them `session_manager` holds the sessions; each `session` talks to its `worker`
process, in which `envs` executes the calls.
"""
