"""``lapwing online``: learn from a stream of experience, and report when it changes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, LayoutsFolder, file_name, is_data, option, read_data, typed_command
from lapwing.errors import ArgumentError

LEARNER = "learner"


@dataclass(frozen=True)
class OnlineCommand:
    """Learn from a stream of experience in bounded memory, and report how far the components turn.

    Example: lapwing online before.txt after.txt --data-steps 20000 --capacity 5000 --dim 9 --out online
    """

    sources: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE...")]
    """Worlds, rules, .txt layouts or data folders, one after another in one stream."""
    dim: int = 11
    """How many components."""
    data_steps: int = 100_000
    """Transitions of each world, by its random policy; a data folder is taken whole."""
    capacity: int = 20_000
    """States to hold; what is older is forgotten."""
    keep: Literal["window", "reservoir"] = "window"
    """Hold the last states, or a uniform sample of all."""
    every: int = 1000
    """States between two updates."""
    steps: int = 16
    """Gradient steps of an update."""
    objective_alone: Flag = False
    """Train by the objective alone, instead of fitting the network to eigenvectors solved on what is held."""
    objective: Annotated[str | None, option("NAME", "allo")] = None
    """allo and its rivals, with options if need be: "allo(barrier=2.0)"."""
    rho: Annotated[Literal["visits", "uniform"] | None, option("{visits,uniform}", "visits")] = None
    """Distribution of states: as counted, or uniform where the dynamics are known to keep that."""
    resume: Flag = False
    """Go on with the learner in the folder, with its own options."""
    seed: int = 0
    """Of the stream and of learning."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, option("DIR", "runs/online-SOURCE")] = None
    """Folder to write: the model, pictures, and the learner to go on with."""
    json: Flag = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        """Stream, update, and write the model of the end."""
        from lapwing.cli.results import exit_code, print_spectrum, run_facts, show_problems
        from lapwing.report.run_folder import refuse_foreign, write_run
        from lapwing.storage.folders import locked
        from lapwing.storage.run_configuration import refuse_unfinished, remove_configuration

        if not self.sources:
            raise ArgumentError("name at least one world or data folder, e.g. `lapwing online Rooms-16`")
        if self.every < 1 or self.data_steps < 1:
            raise ArgumentError("--every and --data-steps must be at least 1")
        label = Path(self.sources[-1]).name if Path(self.sources[-1]).exists() else self.sources[-1]
        out = self.out or Path("runs") / f"online-{file_name(label)}"
        refuse_foreign(out, besides=(LEARNER,))
        learner = self._learner(out)
        worlds = [self._world(source) for source in self.sources]
        with locked(out):
            refuse_unfinished(out)
            metadata = self._stream(learner, worlds, label)
            with terminal.spinner("reading out, drawing, writing"):
                found = learner.model()
                model = replace(found, metadata={**found.metadata, **metadata})
                written = write_run(model, out, data=learner.data(), command=typed_command())
                figure = lw.plots.drift_figure(learner.reports, style=lw.plots.SCREEN)
                written.append(lw.plots.save_figure(figure, out / "drift.png"))
                learner.save(out / LEARNER)
                remove_configuration(out)
        drift = learner.drift()
        if self.json:
            facts = {"seen": drift.seen, "turned": drift.sines.tolist(), "moments": list(drift.moments)}
            terminal.print_json({**run_facts(model, label, out, written), "drift": facts})
            return exit_code(model)
        print_spectrum(model, label)
        moments = ", ".join(f"{moment:,}" for moment in drift.moments) or "none"
        print(f"updates with surprising steps, by states added: {moments}")
        for path in written:
            print(f"wrote {path}")
        show_problems(model)
        return exit_code(model)

    def _learner(self, out: Path) -> "lw.OnlineLearner":
        if self.resume:
            return lw.OnlineLearner.load(out / LEARNER)
        return lw.OnlineLearner(
            self.dim,
            capacity=self.capacity,
            keep=self.keep,
            fit=not self.objective_alone,
            objective=self.objective,
            seed=self.seed,
            rho=self.rho,
        )

    def _world(self, source: str) -> Any:
        """A data set, or a world; an unknown name is better known before any work."""
        if is_data(source):
            return read_data(source)
        return lw.make_world(source, layouts=self.layouts)

    def _stream(self, learner: "lw.OnlineLearner", worlds: list[Any], label: str) -> dict[str, Any]:
        """Add everything and update on the way; gives the metadata of the last source, which pictures need."""
        metadata: dict[str, Any] = {}
        columns = ["states", "held", "loss", "turned", "surprise"]
        total = sum(one.num_states if isinstance(one, lw.Trajectories) else self.data_steps for one in worlds)
        done = 0
        with terminal.live_table(f"learning {label}", columns) as show:
            for number, world in enumerate(worlds):
                for data in self._pieces(world, number, learner.seen):
                    metadata = {name: data.metadata[name] for name in ("world",) if name in data.metadata}
                    rows, ends = data.states(), data.last_states()
                    learner.add(rows, ends)
                    done += len(ends)
                    report = learner.update(self.steps)
                    turned = float(report.turned[1:].mean()) if len(report.turned) > 1 else 0.0
                    numbers = [f"{value:.3g}" for value in (report.loss, turned, report.surprise)]
                    show(min(done, total), total, [f"{report.seen:,}", f"{report.held:,}", *numbers])
        return metadata

    def _pieces(self, world: Any, number: int, seen: int) -> "Iterator[lw.Trajectories]":
        if isinstance(world, lw.Trajectories):
            lengths = world.offsets[1:]
            first = 0
            while first < world.num_episodes:
                last = first + 1
                while last < world.num_episodes and lengths[last] - world.offsets[first] <= self.every:
                    last += 1
                yield world.take(range(first, last))
                first = last
            return
        for piece, begin in enumerate(range(0, self.data_steps, self.every)):
            # Numbers that no other piece of any stream with this seed has.
            seed = (self.seed * 1_000_003 + seen + number * 100_003 + piece) % (1 << 32)
            yield lw.collect(world, min(self.every, self.data_steps - begin), seed=seed)
