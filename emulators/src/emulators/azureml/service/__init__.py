"""The HTTPS service: routes, who is let in, limits, and what a job needs before it is accepted."""
