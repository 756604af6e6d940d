"""Environments of other packages on the command line: keys, wrappers, stacks, unknown names."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import lapwing as lw


class Pendulums(gymnasium.Env[Any, Any]):
    """A place and a goal in a dictionary."""

    observation_space = spaces.Dict({"place": spaces.Box(-9, 9, (2,)), "desired_goal": spaces.Box(-9, 9, (2,))})
    action_space = spaces.Discrete(2)

    def __init__(self, longest: int = 8) -> None:
        self.longest = longest

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self.seen(), 0.0, False, self.time == self.longest, {}

    def seen(self) -> dict[str, Any]:
        return {"place": np.full(2, self.time, np.float32), "desired_goal": np.ones(2, np.float32)}


class Doubled(gymnasium.ObservationWrapper[Any, Any, Any]):
    def observation(self, observation: Any) -> Any:
        return {**observation, "place": 2 * observation["place"]}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(gymnasium.registry, "Places-v0", gymnasium.envs.registration.EnvSpec("Places-v0", Pendulums))


def test_keys_are_asked_for_and_chosen(run: Any) -> None:
    refused = run("collect gym:Places-v0 --steps 20 --out data")
    assert refused.code == 1
    assert "desired_goal ((2,) float32; looks like a goal)" in refused.err
    assert "--keys place" in refused.err
    assert not Path("data").exists()
    assert run("collect gym:Places-v0 --steps 20 --keys place --out data --json").json["observation_shape"] == [2]


def test_wrappers_are_found_by_name_and_observations_stacked(run: Any) -> None:
    call = f"collect gym:Places-v0 --steps 20 --keys place --wrappers {__name__}:Doubled --stack 3 --out data --json"
    assert run(call).json["observation_shape"] == [6]
    data = lw.Trajectories.load("data")
    np.testing.assert_array_equal(data.episode(0)[4], [4, 4, 6, 6, 8, 8])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("collect gym:Places-v0 --wrappers Nothing", "no such wrapper"),
        ("collect gym:Places-v0 --wrappers no_module_of_this_name:Nothing", "no_module_of_this_name"),
        ("collect gym:Places-v0 --keys place --stack 0", "--stack is how many"),
        ("collect GridMaze-7 --stack 2", "are for Gymnasium environments"),
        ("collect GridMaze-7 --keys place", "keys are for Gymnasium"),
        ("learn gym:Places-v0 --keys plaice", "place"),
        ("collect gym:Places-v0 --keys place --env-option size", "--env-option is NAME=VALUE"),
        ("collect gym:Places-v0 --env-option size=3", "unexpected keyword argument 'size'"),
        ("collect gym:Places-v0 --env-option longest=3 --env-option longest=4", "longest is given twice"),
        ("collect gym:Places-v0 --keys place --num-envs 0", "--num-envs is how many"),
        ("collect gym:Places-v0 --keys place --reset-seed -1", "the seed of every reset must be"),
        ("collect gym:Places-v0 --wrappers lapwing.environments.gymnasium_wrappers:RandomStart", "for MiniGrid"),
        ("collect GridMaze-7 --env-option slip=0.1", "are for Gymnasium environments"),
        ("learn GridMaze-7 --reset-seed 1", "are for Gymnasium environments"),
    ],
)
def test_what_cannot_be_is_refused(run: Any, line: str, complaint: str) -> None:
    refused = run(line)
    assert refused.code == 1
    assert complaint in refused.err


def test_options_are_read_as_literals_and_several_environments_stepped_together(run: Any) -> None:
    call = (
        "collect gym:Places-v0 --steps 40 --keys place --env-option longest=5 --num-envs 4 --stack 2 --out data --json"
    )
    facts = run(call).json
    assert (facts["transitions"], facts["observation_shape"]) == (40, [4])
    assert lw.Trajectories.load("data").lengths.tolist() == [5] * 8
    run("collect gym:CartPole-v1 --steps 100 --num-envs 4 --out cartpole")
    assert lw.Trajectories.load("cartpole").metadata["world"]["name"] == "CartPole-v1"


def test_a_data_folder_takes_no_options_of_environments(run: Any) -> None:
    lw.collect("GridMaze-7", 100, out="data")
    assert "are for Gymnasium" in run("learn data --num-envs 2").err


def test_some_or_all_keys_of_recorded_data_are_learned_from(run: Any) -> None:
    rng = np.random.default_rng(0)
    episodes = [np.cumsum(rng.choice([-1, 1], 50))[:, None] % 7 for _ in range(30)]
    lw.from_arrays({"place": episodes, "goal": [0 * one for one in episodes]}).save("data")
    assert run("learn data --dim 2 --steps 2 --keys place --no-report --out run").code in (0, 3)
    assert lw.load("run").dim == 2
    assert run("learn data --dim 2 --steps 2 --no-report --out both").code in (0, 3)
    assert Path("both/eigenvectors.png").is_file()
    values = lw.load("both").transform({"place": episodes[0], "goal": 0 * episodes[0]})
    assert values.shape == (50, 2)
    assert "no key" in run("learn data --keys place gaol").err
    assert run("solve data --dim 2 --out solved").code in (0, 3)
    assert Path("solved/eigenvectors.png").is_file()


@pytest.mark.slow
def test_a_package_that_has_the_environment_is_named() -> None:
    pytest.importorskip("minigrid")
    # In a process of its own, because a package that was imported has registered its environments.
    command = [sys.executable, "-m", "lapwing", "collect", "gym:MiniGrid-Empty-5x5-v0", "--steps", "10"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "gym:minigrid:MiniGrid-Empty-5x5-v0" in ended.stderr


@pytest.mark.slow
def test_an_environment_without_a_map_gets_a_picture_in_the_run_the_plot_and_the_report(run: Any) -> None:
    call = "learn gym:Pendulum-v1 --dim 3 --data-steps 2000 --steps 20 --log-every 10 --hidden 16 --out run"
    assert run(call).code in (0, 3)
    assert Path("run/eigenvectors.png").stat().st_size > 5_000
    assert "data:image/png;base64," in Path("run/report.html").read_text()
    assert run("plot run --inputs 0 1 --out two.png").code == 0
    assert run("plot run --inputs 0 9").code == 1
    assert run("plot run --what spectrum --inputs 0 1").code == 1
    assert '<section id="time"' in Path("run/report.html").read_text()
    assert run("plot run --what trajectories --components 2,3").code == 0
    assert Path("run/trajectories.pdf").stat().st_size > 5_000
    assert run("plot run --what trajectories --data run/experience --out other.png").code == 0
    assert run("plot run --data run/experience --out third.png").code == 0
    for wrong in ("--inputs 0 1", "--components 4", "--data nowhere"):
        refused = run(f"plot run --what trajectories {wrong}")
        assert refused.code == 1
        assert refused.err.strip().count("\n") == 0
