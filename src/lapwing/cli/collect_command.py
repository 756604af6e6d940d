"""``lapwing collect``: experience into a folder."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import (
    OF_ENVIRONMENTS,
    EnvOption,
    Flag,
    Keys,
    LayoutsFolder,
    NumEnvs,
    Observation,
    PolicyFile,
    ResetSeed,
    Slip,
    Stack,
    Wrappers,
    collection_source,
    file_name,
    option,
)
from lapwing.errors import ArgumentError

OPTIONS = ("keys", "observation", "slip", "layouts", "seed", "next_states", "all_actions")


@dataclass(frozen=True)
class CollectCommand:
    """Collect experience into a folder.

    Example: lapwing collect Rooms-16 --steps 1000000 --out data
    """

    world: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WORLD")]
    """A world's name, a rule (maze:10x15:3), a .txt layout, or gym:ID for a Gymnasium environment."""
    steps: int = 1_000_000
    """How many transitions."""
    episode_length: Annotated[str | None, option("N|LOW-HIGH", "50, or a Gymnasium environment's own ends")] = None
    """Transitions per episode, 50 or a range 20-80."""
    observation: Observation = None
    """What is observed in a grid."""
    slip: Slip = None
    """Probability that a random move replaces the chosen one, in a grid."""
    policy: PolicyFile = None
    """Table (states, 4) of move probabilities, in a grid."""
    next_states: int = 1
    """Independent next states of each state, which counting averages; of the package's own worlds."""
    all_actions: Flag = False
    """The next state of every action from each state, so that counting averages over actions exactly."""
    keys: Keys = None
    """Which entries of dictionary or tuple observations to record, of a Gymnasium environment."""
    wrappers: Wrappers = ()
    """Wrappers of a Gymnasium environment, the innermost first: names in gymnasium.wrappers, or MODULE:NAME."""
    stack: Stack = 1
    """Join the last N observations into one, where one alone does not show the state."""
    env_option: EnvOption = ()
    """An argument of a Gymnasium environment, such as obs_type=ram; may be given several times."""
    num_envs: NumEnvs = 1
    """Step so many Gymnasium environments together, as a vector environment; the transitions are shared among them."""
    reset_seed: ResetSeed = None
    """Reset every episode of a Gymnasium environment with this seed: what a reset draws, such as a layout, stays."""
    seed: int = 0
    """The same seed gives the same data."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, option("DIR", "runs/collect-WORLD")] = None
    """Folder to write."""
    json: Flag = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Collect and write."""
        from lapwing.storage.reading import read_array

        source, label = collection_source(self.world, **{name: getattr(self, name) for name in OF_ENVIRONMENTS})
        out = self.out or Path("runs") / f"collect-{file_name(label)}"
        options: dict[str, Any] = {name: getattr(self, name) for name in OPTIONS}
        options["episode_length"] = _episode_length(self.episode_length)
        options["policy"] = None if self.policy is None else read_array(self.policy)
        with terminal.progress_bar(f"collecting from {label}") as progress:
            data = lw.collect(source, self.steps, out=out, progress=progress, **options)
        facts = {
            "transitions": data.num_transitions,
            "episodes": data.num_episodes,
            "observation_shape": {key: list(data.observations[key].shape[1:]) for key in data.keys}
            or list(data.observations.shape[1:]),
            "distinct_observations": len(data.observations) if data.has_table else None,
            "folder": str(out),
        }
        if self.json:
            terminal.print_json(facts)
            return
        rows = [(name.replace("_", " "), terminal.cell(value)) for name, value in facts.items()]
        terminal.print_facts(f"Collected from {label}", rows)
        print(f"Audit it: lapwing audit {out}")


def _episode_length(text: str | None) -> int | tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None:
        raise ArgumentError(f"--episode-length is a number such as 50 or a range such as 20-80, got {text!r}")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))
