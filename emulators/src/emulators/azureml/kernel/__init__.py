"""What every part needs: configuration, errors, identities, addresses, and checks of values."""
