"""Learning: the configuration, the public ``init`` and ``step``, batches, ``learn`` and what it may raise."""

from lapwing.devices import device_mesh, first_process_first, is_first_process, join_processes
from lapwing.training.batches import Batch, ExactTable, Pairs, PairSampler, exact_table, pair_sampler
from lapwing.training.certifying import CertifiedFunctions, certify
from lapwing.training.config import PRESETS, LearnConfig, make_config
from lapwing.training.interrupts import LearningInterruptedError, StoppedError, termination_as_interrupt
from lapwing.training.loggers import LOGGERS, Logger, tensorboard, wandb
from lapwing.training.loop import LearningDivergedError, Progress
from lapwing.training.read_out import NetworkCollapsedError
from lapwing.training.state import StepInfo, TrainState, init, run_steps, step
from lapwing.training.task import Data

__all__ = [
    "LOGGERS",
    "PRESETS",
    "Batch",
    "CertifiedFunctions",
    "Data",
    "ExactTable",
    "LearnConfig",
    "LearningDivergedError",
    "LearningInterruptedError",
    "Logger",
    "NetworkCollapsedError",
    "PairSampler",
    "Pairs",
    "Progress",
    "StepInfo",
    "StoppedError",
    "TrainState",
    "certify",
    "device_mesh",
    "exact_table",
    "first_process_first",
    "init",
    "is_first_process",
    "join_processes",
    "make_config",
    "pair_sampler",
    "run_steps",
    "step",
    "tensorboard",
    "termination_as_interrupt",
    "wandb",
]
