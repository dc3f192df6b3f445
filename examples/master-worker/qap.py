"""
The quadratic assignment problem, as in the record computation of Condor-G (nug30): place n facilities at n places of a grid
so that the sum of flow times distance is least.
"""

import random


def problem(n, width=4):
    """Flows between facilities, always the same for one n, and Manhattan distances on a grid."""
    chance = random.Random(n)
    flow = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i):
            flow[i][j] = flow[j][i] = chance.choice([0, 0, 1, 2, 3, 5, 10])
    distance = [[abs(i // width - j // width) + abs(i % width - j % width) for j in range(n)] for i in range(n)]
    return flow, distance


def cost(flow, distance, places):
    """Of a permutation: facility i is at places[i]."""
    n = len(places)
    return sum(flow[i][j] * distance[places[i]][places[j]] for i in range(n) for j in range(i))


class Search:
    """Branch and bound below a partial placement. `best()` is asked now and then: others may have found a better one."""

    def __init__(self, n, best, found, every=2000):
        self.flow, self.distance = problem(n)
        self.n, self.ask, self.found, self.every = n, best, found, every
        self.best = best()
        self.nodes = 0

    def bound(self, placed, so_far, free):
        """What a placement costs at least: each free facility is matched with its cheapest place."""
        flow, distance = self.flow, self.distance
        total = so_far
        for i in range(len(placed), self.n):
            total += min(sum(flow[i][j] * distance[k][placed[j]] for j in range(len(placed))) for k in free)
        return total

    def below(self, placed):
        so_far = cost(self.flow, self.distance, placed)
        free = [k for k in range(self.n) if k not in placed]
        self.go(list(placed), so_far, free)

    def go(self, placed, so_far, free):
        self.nodes += 1
        if self.nodes % self.every == 0:
            self.best = min(self.best, self.ask())
        if not free:
            if so_far < self.best:
                self.best = so_far
                self.found(so_far, placed)
            return
        if self.bound(placed, so_far, free) >= self.best:
            return
        i = len(placed)
        for k in free:
            more = sum(self.flow[i][j] * self.distance[k][placed[j]] for j in range(i))
            self.go(placed + [k], so_far + more, [other for other in free if other != k])
