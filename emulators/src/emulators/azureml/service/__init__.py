"""The HTTPS service: routes, authorization, limits, and the checks of a job before it is accepted."""
