"""Models that people rely on: names, versions and aliases of runs' models, and the proof of where each came from."""
