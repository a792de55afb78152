"""Plans of agents, in Azure Table Storage."""
