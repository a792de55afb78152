"""Squares by Ray, as a published script computes them: the cluster is found by itself."""

import ray

ray.init()


def square(number: int) -> int:
    return number * number


remote = ray.remote(square)
squares = ray.get([remote.remote(number) for number in range(6)])
assert squares == [0, 1, 4, 9, 16, 25]
print("RAY", sum(node["Alive"] for node in ray.nodes()), "nodes,", len(squares), "squares")
