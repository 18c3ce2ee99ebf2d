"""Server of `internutopia serve`: sessions of many users, each with envs in a process of its own.

`serve` runs it, `app` puts it together, `routes` has what it offers, `middleware` says who may come in, `connection`
how long a client may take. Behind them `session_manager` holds the sessions; each `session` talks to its `worker`
process, in which `envs` does what is asked.
"""
