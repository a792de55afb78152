"""The app's side: how its functions are loaded and called."""
