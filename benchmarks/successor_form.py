"""Eigenoptions in the successor form beside those of the symmetrised walk, in reversible and directed worlds.

    python benchmarks/successor_form.py

For each world: whether the leading eigenvectors of the successor representation are the components of the
representation (absolute cosine), the share of states and options with
the same action, and the diffusion time of a walk over actions and both kinds of options.
"""

import numpy as np

import lapwing as lw
from lapwing.applications import diffusion_time, eigenpurpose_options, successor_components

COUNT = 4


def main() -> None:
    print("| world | absolute cosine | same action | diffusion time: components | successor form |")
    print("|---|---|---|---|---|")
    for name in ("FourRooms", "WindyRooms", "OneWayRooms", "PortalRooms"):
        world = lw.make_world(name)
        components = lw.solve(world, COUNT + 1).transform(world.table())[:, 1:]
        found = successor_components(lw.operator(world), COUNT)
        # The sign of an eigenvector is free.
        found = found * np.sign(np.sum(found * components, axis=0))
        cosines = (
            np.sum(found * components, axis=0) / np.linalg.norm(found, axis=0) / np.linalg.norm(components, axis=0)
        )
        plain, successor = eigenpurpose_options(world, components), eigenpurpose_options(world, found)
        same = np.mean([one.actions == other.actions for one, other in zip(plain, successor, strict=True)])
        times = [diffusion_time(world, options) for options in (plain, successor)]
        print(
            f"| {name} | {', '.join(f'{one:.3f}' for one in cosines)} | {same:.3f} | {times[0]:,.1f} | {times[1]:,.1f} |"
        )


if __name__ == "__main__":
    main()
