"""What the nodes cost, whom it is charged to, and what a project may spend."""
