"""What a child process can be: one module a role, each with ``make(fds) -> {method: callable}``."""
