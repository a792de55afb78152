"""Parts that all other modules use: configuration, errors, identities, locations, and checks of values."""
