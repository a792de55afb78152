"""The timer trigger: schedules, the lease that chooses the firing host, and the stored status."""
