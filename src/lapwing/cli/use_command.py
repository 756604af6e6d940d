"""``lapwing use``: distances, options, shaping and plans of a saved representation, as pictures and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, option
from lapwing.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lapwing.environments import World

# Observations of data that are drawn where the world has no picture.
MAX_POINTS = 4000
# Above so many states, times between all of them take too long to be waited for.
MAX_WALKED_STATES = 500
# Beyond it a mean number of steps is a statement about rounding.
LONG_TIME = 1e9
PLAN_STEPS = 100_000
JOURNEY_STEPS = 200

State = Annotated[str, tyro.conf.arg(metavar="STATE")]


@dataclass(frozen=True, eq=False)
class Scene:
    """Where a representation is shown: the points of its world, or observations of data.

    Attributes:
        model: the representation.
        world: its world, where it has one with a picture.
        data: that it is shown with, where given.
        points: (n, ...) observations.
        places: (n, 2) where each is drawn, down and across.
    """

    model: "lw.LaplacianRepresentation"
    world: "World | None"
    data: "lw.Trajectories | None"
    points: "NDArray[Any]"
    places: "NDArray[np.float64]"

    @property
    def where(self) -> Any:
        """What a map is drawn on."""
        return self.places if self.world is None else self.world

    def find(self, text: str, what: str) -> int:
        """The point that a text names.

        Args:
            text: a number of a state, or a place such as ``3,5``: row and column of the picture, or an observation.
            what: which option it came from, for messages.

        Returns:
            Its number among the points.
        """
        import numpy as np

        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if not numbers or not np.isfinite(numbers).all():
            raise ArgumentError(f"{what} is a state such as 12, or a place such as 3,5 (row, column), got {text!r}")
        if len(numbers) == 1:
            state = int(numbers[0])
            if state != numbers[0] or not 0 <= state < len(self.points):
                raise ArgumentError(f"{what}: states are numbered 0 to {len(self.points) - 1}, got {text}")
            return state
        among = self.places if self.world is not None else self.points.reshape(len(self.points), -1)
        if len(numbers) != among.shape[1]:
            raise ArgumentError(f"{what} needs {among.shape[1]} numbers here, got {text}")
        apart = np.linalg.norm((among - np.asarray(numbers)) / self._unit(among), axis=1)
        nearest = int(apart.argmin())
        if apart[nearest] > 1.0:
            raise ArgumentError(
                f"{what} {text} lies in a wall or outside the data; the nearest is {self.name(nearest)}"
            )
        return nearest

    def name(self, point: int) -> str:
        """A point as text that :meth:`find` reads.

        Args:
            point: its number.

        Returns:
            Its place, or its observation where there is no picture.
        """
        among = self.places if self.world is not None else self.points.reshape(len(self.points), -1)
        return ",".join(f"{number:.4g}" for number in among[point])

    def _unit(self, among: "NDArray[Any]") -> Any:
        """How far a place may be from the nearest point: inside its pixel, or a tenth of the data's extent."""
        import numpy as np

        if self.world is None:
            return np.maximum(0.1 * np.ptp(among, axis=0), np.finfo(np.float32).tiny)
        left, right, bottom, top = self.world.field_extent()
        rows, columns = self.world.field_image(np.zeros(len(self.points))).shape
        return 0.75 * np.array([abs(bottom - top) / rows, abs(right - left) / columns])


@dataclass(frozen=True)
class UseOfModel:
    """What all uses take."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a saved representation."""
    data: Annotated[Path | None, option("DATA", "none")] = None
    """Data folder: needed where the representation has no record of a world with a picture."""
    out: Annotated[Path | None, option("DIR", "MODEL")] = None
    """Folder to write to."""
    json: Flag = False
    """Print JSON instead of text."""

    def scene(self) -> Scene:
        """Load the representation and find where to show it."""
        import numpy as np

        from lapwing.cli.results import show_problems
        from lapwing.environments import world_from_description
        from lapwing.plots import field_places

        model = lw.load(self.model)
        show_problems(model)
        if model.metadata.get("reversible") is False:
            terminal.note("these dynamics are directed; distances are those of the symmetrised walk")
        data = None if self.data is None else lw.Trajectories.load(self.data)
        world = world_from_description(model.metadata.get("world"))
        if world is not None and (points := world.field_points()) is not None:
            _refuse_unknown(model, np.asarray(points))
            return Scene(model, world, data, np.asarray(points), field_places(world))
        if data is None:
            raise ArgumentError("the model has no record of a world with a picture; give observations with --data DATA")
        data.require_one_key()
        rows = np.linspace(0, len(data.observations) - 1, min(len(data.observations), MAX_POINTS)).astype(np.int64)
        points = np.asarray(data.observations[np.unique(rows)])
        if len(points) < len(data.observations):
            terminal.note(
                f"{len(points):,} of {len(data.observations):,} observations are shown, and numbered among themselves"
            )
        if points.ndim != 2 or points.shape[1] < 2:
            raise DataError(f"observations of shape {points.shape[1:]} cannot be drawn; vectors of two or more can")
        return Scene(model, None, data, points, points[:, 1::-1].astype(np.float64))

    def finish(self, name: str, figure: Any, facts: dict[str, Any], lines: Sequence[str]) -> None:
        """Write picture and JSON, and print what was found.

        Args:
            name: of the two files.
            figure: the picture.
            facts: JSON types.
            lines: what is printed without ``--json``.
        """
        from lapwing.storage.files import write_json

        folder = self.out or self.model
        folder.mkdir(parents=True, exist_ok=True)
        picture, record = folder / f"{name}.png", folder / f"{name}.json"
        lw.plots.save_figure(figure, picture)
        write_json(record, facts)
        if self.json:
            terminal.print_json({**facts, "files": [str(picture), str(record)]})
            return
        for line in lines:
            print(line)
        print(f"wrote {picture}\nwrote {record}")


@dataclass(frozen=True)
class UseDistances(UseOfModel):
    """Draw commute times from a state, plain distances, and how central each state is.

    Example: lapwing use distances demo --start 1,1
    """

    start: Annotated[str | None, option("STATE", "the most central state")] = None
    """Number of a state, or its place as ROW,COLUMN; without a world's picture an observation."""

    def run(self) -> None:
        """Compute, draw and write them."""
        import numpy as np
        from scipy.stats import spearmanr

        from lapwing.applications import bottleneck_scores, commute_times

        scene = self.scene()
        central = bottleneck_scores(scene.model, scene.points)
        start = int(central.argmin()) if self.start is None else scene.find(self.start, "--start")
        times = commute_times(scene.model, scene.points[start : start + 1], scene.points)[0]
        values = np.asarray(scene.model.embedding(scene.points, scaled=False), dtype=np.float64)
        plain = np.linalg.norm(values - values[start], axis=1)
        maps = {"commute time, steps": times, "plain distance": plain, "mean hitting time": central}
        figure = lw.plots.value_maps(scene.where, maps, lw.plots.Marks(start=scene.places[start]))
        facts: dict[str, Any] = {
            "start": {"state": start, "place": scene.name(start)},
            "dim": scene.model.dim,
            "commute_times": _rounded(times),
            "plain_distances": _rounded(plain),
            "mean_hitting_times": _rounded(central),
            "most_central": [scene.name(int(state)) for state in central.argsort()[:5]],
        }
        lines = [f"from {scene.name(start)}: commute times up to {times.max():.4g} steps"]
        paths = _path_lengths(scene, start)
        if paths is not None:
            known = np.isfinite(paths)
            for name, found in (("psi", times), ("plain", plain)):
                facts[f"spearman_{name}"] = float(spearmanr(found[known], paths[known]).statistic)
            agreement = f"psi {facts['spearman_psi']:.3f}, plain {facts['spearman_plain']:.3f}"
            lines.append(f"rank correlation with the number of steps: {agreement}")
        lines.append(f"most central: {'  '.join(facts['most_central'])}")
        self.finish("distances", figure, facts, lines)


@dataclass(frozen=True)
class UseOptions(UseOfModel):
    """Make options and draw them: eigenoptions of the components, covering options or diffusion options.

    Exact where the world's dynamics are known; from DATA with recorded actions otherwise, or where --learned is given.

    Example: lapwing use options demo --components 2-4
    """

    kind: Literal["eigenoptions", "covering", "diffusion"] = "eigenoptions"
    """Which options."""
    components: Annotated[str | None, option("LIST", "2-4")] = None
    """Of eigenoptions, such as 2-4 or 2,5; each gives two options."""
    count: int = 4
    """How many covering options."""
    time: int = 4
    """Of diffusion options; longer times give fewer."""
    learned: Flag = False
    """Learn eigenoptions from the actions in DATA even though the dynamics are known."""

    def run(self) -> None:
        """Make, draw and write them."""
        import numpy as np

        from lapwing.applications import diffusion_time

        scene = self.scene()
        options, columns = self._options(scene)
        if not all(isinstance(one, lw.applications.Option) for one in options) or scene.world is None:
            self._finish_learned(scene, options)
            return
        fields = None
        if columns is not None:
            fields = np.asarray(scene.model.transform(scene.points), dtype=np.float64)[:, columns]
            fields = np.stack([fields, -fields], axis=2).reshape(len(scene.points), -1)
        figure = lw.plots.options_figure(scene.world, options, fields)
        facts: dict[str, Any] = {
            "kind": self.kind,
            "options": [
                {
                    "name": one.name,
                    "actions": one.actions.tolist(),
                    "starts": int(one.initiation_set.sum()),
                    "ends": [scene.name(int(state)) for state in np.flatnonzero(one.termination_probabilities > 0)],
                }
                for one in options
            ],
        }
        lines = [
            f"{one['name']}: starts in {one['starts']} states, ends at {_few(one['ends'])}" for one in facts["options"]
        ]
        if len(scene.points) <= MAX_WALKED_STATES:
            with terminal.spinner("walking"):
                facts["diffusion_time"] = diffusion_time(scene.world, options)
                facts["diffusion_time_of_actions"] = diffusion_time(scene.world)
            alone, joined = (facts[name] for name in ("diffusion_time_of_actions", "diffusion_time"))
            longer = f"more than {LONG_TIME:g}" if joined > LONG_TIME else f"{joined:.5g}"
            lines.append(f"steps between two states: {alone:.5g} with actions alone, {longer} with these options")
            if joined > alone:
                lines.append("few options hold a random walk at their ends; more of them let it explore")
        self.finish("options", figure, facts, lines)

    def _options(self, scene: Scene) -> "tuple[list[Any], list[int] | None]":
        """The options, and which columns of the components belong to them."""
        from lapwing.applications import covering_options, diffusion_options, eigenoptions, learn_options
        from lapwing.cli.plot_command import component_numbers

        if self.kind != "eigenoptions":
            if self.components is not None or self.learned:
                raise ArgumentError(f"--components and --learned are for eigenoptions, not for {self.kind} options")
            if scene.world is None:
                raise ArgumentError(f"{self.kind} options need a world with known dynamics; take --kind eigenoptions")
            make = covering_options if self.kind == "covering" else diffusion_options
            return make(scene.world, self.count if self.kind == "covering" else self.time), None
        if scene.model.dim < 2:
            raise ArgumentError("this representation has only its constant component, which gives no option")
        chosen = component_numbers(self.components or f"2-{min(4, scene.model.dim)}")
        columns = [number - 1 for number in chosen]
        if not self.learned and scene.world is not None and scene.world.action_matrices() is not None:
            return list(eigenoptions(scene.model, scene.world, chosen)), columns
        if scene.data is None:
            raise ArgumentError("options without known dynamics are learned: give --data DATA, with recorded actions")
        with terminal.spinner("learning options"):
            return list(learn_options(scene.model, scene.data, chosen)), columns

    def _finish_learned(self, scene: Scene, options: list[Any]) -> None:
        """Draw where learned options go on and where they end."""
        import numpy as np

        ends = {one.name: np.array([one.termination(point) for point in scene.points]) for one in options}
        figure = lw.plots.value_maps(scene.where, {f"{name} ends": values for name, values in ends.items()})
        facts = {
            "kind": self.kind,
            "options": [
                {"name": name, "ends": [scene.name(int(point)) for point in np.flatnonzero(values > 0.5)]}
                for name, values in ends.items()
            ],
        }
        lines = [f"{name}: ends at {values.mean():.1%} of {len(values)} points" for name, values in ends.items()]
        self.finish("options", figure, facts, lines)


@dataclass(frozen=True)
class UseShape(UseOfModel):
    """Draw the potential of shaped rewards towards a goal, and where climbing it leads.

    Example: lapwing use shape demo --goal 3,5
    """

    goal: Annotated[str | None, option("STATE", "required")] = None
    """Number of a state, or its place as ROW,COLUMN; without a world's picture an observation."""
    plain: Flag = False
    """Distances of the plain components instead of psi."""

    def run(self) -> None:
        """Compute, draw and write it."""
        import numpy as np

        from lapwing.applications import GoalDistance, eigenpurpose_options

        scene = self.scene()
        if self.goal is None:
            raise ArgumentError("name the goal: --goal STATE, such as --goal 3,5")
        goal = scene.find(self.goal, "--goal")
        distance = GoalDistance(scene.model, scene.points[goal], scaled=not self.plain)
        potential = -distance(scene.points)
        facts: dict[str, Any] = {
            "goal": {"state": goal, "place": scene.name(goal)},
            "scaled": not self.plain,
            "potential": _rounded(potential),
        }
        lines = [f"potential 0 at {scene.name(goal)}, down to {potential.min():.3f}"]
        world = scene.world
        if world is None or world.action_matrices() is None:
            marks = lw.plots.Marks(goal=scene.places[goal])
            figure = lw.plots.value_maps(scene.where, {"distance to the goal": -potential}, marks)
        else:
            # Without a discount an option goes to the neighbour with the largest value.
            names = [f"towards {scene.name(goal)}"]
            (climb,) = eigenpurpose_options(world, potential[:, None], names=names, discount=0.0, both_signs=False)
            reached = _leads_to(world, climb.actions, goal)
            stuck = np.flatnonzero(climb.termination_probabilities > 0)
            stuck = stuck[stuck != goal]
            facts |= {"reached": float(reached.mean()), "stuck": [scene.name(int(state)) for state in stuck]}
            lines.append(f"climbing the potential reaches the goal from {reached.mean():.1%} of {len(reached)} states")
            if len(stuck):
                lines.append(f"it gets stuck at {_few(facts['stuck'])}")
            figure = lw.plots.options_figure(world, [climb], potential[:, None] - potential.mean(), width=3.4)
        self.finish("shape", figure, facts, lines)


@dataclass(frozen=True)
class UsePlan(UseOfModel):
    """Plan a way from a start to a goal over regions of the representation, and go there in the world.

    Example: lapwing use plan demo --start 1,1 --goal 18,18
    """

    start: Annotated[str | None, option("STATE", "required")] = None
    """Number of a state, or its place as ROW,COLUMN; without a world's picture an observation."""
    goal: Annotated[str | None, option("STATE", "required")] = None
    """Likewise."""
    regions: Annotated[int | None, option("N", "16, or fewer in small worlds")] = None
    """How many regions; 1 for none, and the goal itself as the target."""
    seed: int = 0
    """Of regions and search."""

    def run(self) -> None:
        """Plan, go, draw and write."""
        from lapwing.applications import region_graph

        scene = self.scene()
        if self.start is None or self.goal is None:
            raise ArgumentError("name both ends: --start STATE --goal STATE, such as --start 1,1 --goal 18,18")
        start, goal = scene.find(self.start, "--start"), scene.find(self.goal, "--goal")
        with terminal.spinner("finding regions"):
            data = scene.data
            if data is None:
                assert scene.world is not None
                data = lw.collect(scene.world, PLAN_STEPS, seed=self.seed)
            count = min(16, len(data.observations)) if self.regions is None else self.regions
            graph = region_graph(scene.model, data, count, seed=self.seed)
        labels, path = graph.regions_of(scene.points), graph.path(scene.points[start], scene.points[goal])
        facts: dict[str, Any] = {
            "start": {"state": start, "place": scene.name(start), "region": path[0]},
            "goal": {"state": goal, "place": scene.name(goal), "region": path[-1]},
            "regions": len(graph.centres),
            "path": path,
        }
        lines = [f"by regions {' - '.join(map(str, path))} of {len(graph.centres)}"]
        ways = []
        if scene.world is not None:
            journey, reached = self._journey(scene, graph if count > 1 else None, start, goal)
            ways.append(journey)
            facts |= {"reached": reached, "steps": len(journey) - 1, "way": journey.round(3).tolist()}
            lines.append(f"{'reached the goal' if reached else 'did not reach the goal'} in {len(journey) - 1} steps")
        marks = lw.plots.Marks(scene.places[start], scene.places[goal], ways)
        figure = lw.plots.value_maps(scene.where, {"regions": labels}, marks, regions=["regions"], width=3.4)
        self.finish("plan", figure, facts, lines)

    def _journey(self, scene: Scene, graph: Any, start: int, goal: int) -> "tuple[NDArray[np.float64], bool]":
        """Places on the way, and whether it ended at the goal."""
        import numpy as np

        from lapwing.applications import Planner
        from lapwing.plots import field_places

        world = scene.world
        assert world is not None
        if world.table() is not None:
            states: Any = np.arange(len(scene.points))
            radius = 0.0
        elif world.picture_places(scene.points) is not None and scene.points.shape[1:] == (2,):
            # Of continuous mazes the place in the picture is the state.
            states = world.picture_places(scene.points)
            if not np.allclose(world.observe(states), scene.points, atol=1e-4):
                raise ArgumentError(f"{world.name} cannot be entered at a place of its picture; plan in Python")
            radius = 2.0 * float(np.linalg.norm(np.ptp(scene.points, axis=0)) / np.sqrt(len(scene.points)))
        else:
            raise ArgumentError(f"{world.name} cannot be entered at a place; plan in Python, with lapwing.applications")
        planner = Planner(scene.model, world, graph, seed=self.seed)
        with terminal.spinner("going"):
            found = planner.travel(world, states[[start]], states[[goal]], radius=radius, most_steps=JOURNEY_STEPS)
        seen = found.observations[: int(found.steps[0]) + 1, 0]
        if world.table() is None:
            return np.asarray(world.picture_places(seen)), bool(found.reached[0])
        rows = [int((scene.points == one).reshape(len(scene.points), -1).all(axis=1).argmax()) for one in seen]
        return field_places(world)[rows], bool(found.reached[0])


@dataclass(frozen=True)
class UseCommand:
    """Put a saved representation to use: distances, options, shaped rewards, plans; a picture and JSON each.

    Example: lapwing use distances demo
    """

    use: (
        Annotated[UseDistances, tyro.conf.subcommand("distances", prefix_name=False)]
        | Annotated[UseOptions, tyro.conf.subcommand("options", prefix_name=False)]
        | Annotated[UseShape, tyro.conf.subcommand("shape", prefix_name=False)]
        | Annotated[UsePlan, tyro.conf.subcommand("plan", prefix_name=False)]
    )
    """What to use it for."""

    def run(self) -> None:
        """Run the use."""
        self.use.run()


def _refuse_unknown(model: "lw.LaplacianRepresentation", points: "NDArray[Any]") -> None:
    """A counted model does not know states that were never visited, and everything here is asked of all states."""
    import numpy as np

    from lapwing.plots import field_values

    unknown = int(np.isnan(field_values(model, points)).any(axis=1).sum())
    if unknown:
        raise DataError(
            f"{unknown} of {len(points)} states were never visited, and this model was counted; collect more, or learn "
            "a network with `lapwing learn`"
        )


def _rounded(values: "NDArray[Any]") -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _few(names: list[str], most: int = 6) -> str:
    shown = "  ".join(names[:most]) or "no state"
    return shown if len(names) <= most else f"{shown}  and {len(names) - most} more"


def _path_lengths(scene: Scene, start: int) -> "NDArray[np.float64] | None":
    """Numbers of steps from the start to every state, where the matrix is known."""
    import numpy as np
    from scipy.sparse.csgraph import shortest_path

    matrix = None if scene.world is None or scene.world.table() is None else scene.world.transition_matrix()
    return None if matrix is None else np.asarray(shortest_path(matrix, unweighted=True, indices=start))


def _leads_to(world: "World", actions: "NDArray[np.int64]", goal: int) -> "NDArray[np.bool_]":
    """Whether the most likely next states of the actions lead from each state to the goal."""
    import numpy as np

    from lapwing.applications import likeliest_next_states

    here = np.arange(len(actions))
    following = np.where(actions >= 0, likeliest_next_states(world)[here, np.maximum(actions, 0)], here)
    following[goal] = goal
    for _ in range(len(actions).bit_length()):
        following = following[following]
    return following == goal
