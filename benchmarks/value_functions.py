"""How many states of the four rooms reach a goal by least-squares policy iteration, by number of components.

    python benchmarks/value_functions.py [--discount 0.9] [--transitions 300000]

Value iteration on the true dynamics stands beside it: with all components the two agree.
"""

import argparse
import warnings

import numpy as np

import lapwing as lw
from lapwing.applications import (
    greedy_actions,
    least_squares_policy_iteration,
    likeliest_next_states,
    optimal_action_values,
)

MOST_STEPS = 200


def reached(world: lw.environments.World, actions: np.ndarray, goal: int) -> int:
    places, here = likeliest_next_states(world), np.arange(len(actions))
    found = here == goal
    for _ in range(MOST_STEPS):
        here = np.where(found, here, places[here, actions[here]])
        found |= here == goal
    return int(found.sum()) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--discount", type=float, default=0.9)
    parser.add_argument("--transitions", type=int, default=300_000)
    given = parser.parse_args()
    world = lw.make_world("FourRooms")
    states, goal = world.table(), 0
    data = lw.collect(world, given.transitions, seed=0, record="actions")
    wanted = optimal_action_values(world, np.arange(len(states)) == goal, given.discount)
    print("components  reached  rounds  settled  largest error of values")
    for dim in (5, 11, 20, 35, 50, 80, 104):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = least_squares_policy_iteration(
                lw.solve(world, dim=dim),
                data,
                lambda seen: (seen == states[goal]).all(axis=1),
                discount=given.discount,
            )
        values = found.action_values(states)
        count = reached(world, greedy_actions(values), goal)
        error = np.abs(values - wanted).max() / np.abs(wanted).max()
        settled = not any(issubclass(one.category, lw.LapwingWarning) for one in caught)
        print(f"{dim:10d}  {count:3d}/103  {found.rounds:6d}  {settled!s:7}  {error:.1e}")


if __name__ == "__main__":
    main()
