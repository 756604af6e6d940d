"""docs/from_authors_code.md lists every option of the authors' code, and what it says to type here exists."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.encoders.convolution import conv
from lapwing.encoders.mlp import mlp
from lapwing.training.config import PRESETS, LearnConfig, make_config

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "from_authors_code.md").read_text(encoding="utf-8")
OURS = PAGE.split("lapwing learn GridRoom-16", 1)[1]  # below their own command
# Arguments of train_laprepr.py, then the keys of its YAML files: names only.
ARGUMENTS = [
    "exp_label",
    "use_wandb",
    "deactivate_training",
    "wandb_offline",
    "save_model",
    "obs_mode",
    "config_file",
    "save_dir",
    "n_samples",
    "batch_size",
    "discount",
    "total_train_steps",
    "max_episode_steps",
    "seed",
    "env_name",
    "lr",
    "hidden_dims",
    "barrier_initial_val",
    "lr_barrier_coefs",
]
KEYS = [
    "d",
    "algorithm",
    "env_family",
    "activation",
    "n_conv_layers",
    "lr_duals",
    "min_duals",
    "max_duals",
    "min_barrier_coefs",
    "max_barrier_coefs",
    "error_update_rate",
    "q_error_update_rate",
    "lr_dual_velocities",
    "use_barrier_for_duals",
    "use_barrier_normalization",
    "normalize_graph_loss",
    "coefficient_normalization",
    "asymmetric_normalization",
    "print_freq",
    "save_model_every",
    "log_dir",
    "save_freq",
    "do_plot_eigenvectors",
    "save_eig",
    "eigval_precision_order",
    "direct_rotation",
    "window_size",
    "reduction_factor",
]


def rows() -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")
    ]


def test_every_option_of_the_authors_code_has_a_row() -> None:
    named = {re.sub(r"^--", "", name).partition(" ")[0].rstrip(":") for row in rows() for name in code(row[0])}
    assert named >= {*ARGUMENTS, *KEYS}


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_flag_on_the_page_is_one_of_ours(run: Any) -> None:
    commands = ("learn", "collect", "solve", "score")
    known = {flag for name in commands for flag in re.findall(r"--[a-z-]+", run(f"{name} --help").out)}
    cells = [cell for row in rows() for cell in row[1:]]
    used = {flag for cell in [*cells, *OURS.splitlines()[:1]] for flag in re.findall(r"--[a-z_-]+", cell)}
    assert "--data-steps" in used
    assert used <= known, used - known


def test_every_public_name_on_the_page_exists() -> None:
    names = set(re.findall(r"\blw\.([a-z_]+)", PAGE))
    assert len(names) > 5
    assert [name for name in names if not hasattr(lw, name)] == []


@pytest.mark.parametrize("text", sorted(set(re.findall(r'--objective "([^"]+)"', PAGE))))
def test_objectives_on_the_page_can_be_made(text: str) -> None:
    assert make_config("paper", objective=text).make_objective()


@pytest.mark.parametrize("text", sorted(set(re.findall(r"\blw\.(?:allo|ggdo|quadratic_penalty)\([^)]*\)", PAGE))))
def test_objectives_in_python_can_be_made(text: str) -> None:
    assert eval(text, {"lw": lw})


def test_options_in_python_exist() -> None:
    given = {name for row in rows() if len(row) == 4 for name in re.findall(r"^(\w+)=", " ".join(code(row[2])))}
    known = {*vars(LearnConfig)["__dataclass_fields__"], *inspect.signature(lw.learn).parameters}
    for function in (lw.collect, mlp, conv):
        known |= {*inspect.signature(function).parameters}
    assert given <= known, given - known


def test_the_paper_preset_is_half_of_their_numbers() -> None:
    theirs = {"barrier": 0.5, "barrier_rate": 0.01, "dual_rate": 1e-4}
    assert PRESETS["paper"]["objective_options"] == {name: value / 2 for name, value in theirs.items()}
    row = next(line for line in PAGE.splitlines() if line.startswith("| b, b's rate"))
    assert row.endswith("| 0.5, 0.01, 1e-4 | 0.25, 0.005, 5e-5 |")


def test_the_factor_of_cqp_is_as_printed() -> None:
    c = range(11, 0, -1)
    assert round(11**2 / (2 * sum(min(j, k) for j in c for k in c)), 2) == 0.12
