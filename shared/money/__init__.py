"""Money: node costs, payers, and project budgets."""
