"""Models that people rely on: names, versions and aliases of what runs left, and the proof of where each came from."""
