"""The app's side: loading and calling the app's functions."""
