"""Money: what nodes cost, who pays, and what a project may spend."""
