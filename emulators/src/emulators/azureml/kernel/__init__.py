"""Parts for every other module: configuration, errors, identities, locations, and checks of values."""
