"""The timer trigger: schedules, the lease that decides which host fires, and the stored status."""
