"""Parts that all others need: configuration, errors, identities, locations, and checks of values."""
