"""The studies of sweeps, in Optuna's format."""
