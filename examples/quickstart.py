"""Worlds, experience, exact spectra and scores in a few lines. Runs in seconds; writes runs/counted."""

import gymnasium

import lapwing as lw

data = lw.collect("Rooms-16", steps=1_000_000, seed=0)  # 20,000 episodes of 50 steps
print(lw.audit(data))  # coverage, components, episode ends, asymmetry

truth = lw.solve("Rooms-16", dim=11)  # exact
print(truth.eigenvalues_in(lw.successor(0.9)))  # ascending; truth.eigenvalues are those of I - P
print(truth.certificate())  # per component: trusted, degenerate or not converged
print(truth.transform(data.episode(0)).shape)  # 51 observations to (51, 11) components

counted = lw.solve(data, dim=11)  # the same from experience: count transitions, diagonalise
print(lw.score(counted, truth))  # cosines and eigenvalue errors
counted.save("runs/counted")  # lw.load("runs/counted") reads it back

env = gymnasium.make("lapwing/Rooms-16-v0", observation="pixels", render_mode="rgb_array")
observation, info = env.reset(seed=0)
print(observation.shape, info["state"])
