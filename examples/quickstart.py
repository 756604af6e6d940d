"""Collect, audit, learn, solve and score in a few lines. Runs in seconds; writes runs/rooms16."""

import lapwing as lw

data = lw.collect("Rooms-16", steps=1_000_000, seed=0)  # or lw.collect(any_gymnasium_env, policy=...)
print(lw.audit(data))  # coverage, components, episode ends, asymmetry, hidden resets

model = lw.learn(data, dim=11, seed=0)  # a LaplacianRepresentation
print(model.transform(data.episode(0)).shape)  # 51 observations to (51, 11) components, E[u^2] = 1
print(model.eigenvalues_in(lw.successor(0.9)))  # ascending; model.eigenvalues are those of I - P
print(model.certificate())  # per component, without a ground truth

truth = lw.solve("Rooms-16", dim=11)  # exact; the same class
print(lw.score(model, truth))  # cosines and eigenvalue errors
print(lw.counting_score(data, truth))  # the baseline: counting transitions in the same data
model.save("runs/rooms16")  # lw.load("runs/rooms16") reads it back
