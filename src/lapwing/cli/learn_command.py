"""``lapwing learn``: learn a representation, or resume learning that was interrupted."""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import (
    GYMNASIUM_PREFIX,
    OF_ENVIRONMENTS,
    EnvOption,
    Flag,
    Keys,
    LayoutsFolder,
    NumEnvs,
    Observation,
    ResetSeed,
    Slip,
    Stack,
    Wrappers,
    collection_source,
    file_name,
    is_data,
    option,
    read_data,
    refuse_environment_options,
    typed_command,
)
from lapwing.errors import ArgumentError, CannotWriteError, DamagedFileError, LapwingError

if TYPE_CHECKING:
    from lapwing.cli.results import Result
    from lapwing.storage.run_configuration import RunConfiguration

PAGE = "report.html"

# As many as one page shows side by side.
MAX_SEEDS = 24

# What may be given with --resume; everything else is as it was.
WITH_RESUME = ("resume", "json", "no_report")


@dataclass(frozen=True)
class LearnCommand:
    """Learn a representation from a world's experience, its exact operator, or a data set.

    Example: lapwing learn Rooms-16 --dim 11 --out demo
    """

    RENAMED: ClassVar = {
        "--again": "--overwrite",
        "--spare": "--oversampling",
        "--barrier": "--objective 'allo(barrier=...)'",
        "--barrier-rate": "--objective 'allo(barrier_rate=...)'",
        "--dual-rate": "--objective 'allo(dual_rate=...)'",
    }

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help_behavior_hint="")] = ""
    """A world's name, a rule, a .txt layout, gym:ID, or a data folder."""
    resume: Annotated[Path | None, option("RUN", "none")] = None
    """Resume a run that was interrupted, with its own arguments; the end is the same to the last bit."""
    config: Annotated[Path | None, option("FILE", "none")] = None
    """A .json or .toml file of learning options; a flag that is given wins over the file, the file over the preset."""
    dim: Annotated[int | None, option("N", "11")] = None
    """How many components."""
    preset: Annotated[str | None, option("{default,paper,pixels}", "default")] = None
    """What the other options start from."""
    exact: Flag = False
    """Learn from the exact operator of the world instead of experience."""
    data_steps: int = 1_000_000
    """Transitions to collect where no data folder is given."""
    steps: Annotated[int | None, option("N", "the preset's")] = None
    """Gradient steps at most."""
    all_steps: Flag = False
    """Make all of them, converged or not."""
    seed: Annotated[int | None, option("N", "0")] = None
    """Of collection and of learning."""
    seeds: int = 1
    """How many seeds to learn in one program, from --seed on; of several, each is a run of its own in OUT/seed-N."""
    objective: Annotated[str | None, option("NAME", "allo")] = None
    """allo, agdo, ggdo, gdo, omm, nested_lora, neural_ef, vamp2, ..., with options if need be: "omm(order=2)"."""
    start: Annotated[Path | None, option("RUN", "none")] = None
    """A model to begin with, of the same kind of observations and the same sum of --dim and --oversampling."""
    encoder: Annotated[str | None, option("NAME", "by the shape of observations")] = None
    """fourier, mlp, conv or table, with options if need be: "fourier(scales=(3.0, 10.0))"."""
    batches: Annotated[str | None, option("KIND", "exact where observations repeat")] = None
    """exact, sampled (the paper's) or unbiased."""
    discounts: Annotated[tuple[float, ...] | None, option("G...", "the preset's")] = None
    """Discounts of the lags; several are mixed."""
    rho: Annotated[Literal["visits", "uniform"] | None, option("{visits,uniform}", "the preset's")] = None
    """Distribution of states: as counted, or uniform where the dynamics are known to keep that."""
    batch_size: Annotated[int | None, option("N", "1024")] = None
    """Pairs per step, where batches are sampled."""
    oversampling: Annotated[int | None, option("N", "the preset's")] = None
    """Components learned beyond --dim and left out of the result."""
    hidden: Annotated[tuple[int, ...] | None, option("N...", "the preset's")] = None
    """Sizes of the hidden layers of the network."""
    learning_rate: Annotated[float | None, option("R", "the preset's")] = None
    """Of Adam, at the start."""
    refit: Annotated[int | None, option("N", "the preset's")] = None
    """Rounds in which the network is fitted to what was solved, where exact batches are not possible; 0 for none."""
    refine: Annotated[str | None, option("{ritz,none}", "the preset's")] = None
    """Rotate inside the learned span at the end, or not."""
    log_every: Annotated[int | None, option("N", "the preset's")] = None
    """Steps between lines of progress."""
    memory: Annotated[float | None, option("GIB", "1")] = None
    """GiB that observations may take while learning; of larger data each chunk of steps holds another part."""
    observation: Observation = None
    """What is observed in a grid."""
    slip: Slip = None
    """Probability that a random move replaces the chosen one, in a grid."""
    keys: Keys = None
    """Which entry of dictionary or tuple observations to learn from, of a Gymnasium environment or a data folder."""
    wrappers: Wrappers = ()
    """Wrappers of a Gymnasium environment, the innermost first: names in gymnasium.wrappers, or MODULE:NAME."""
    stack: Stack = 1
    """Join the last N observations of a Gymnasium environment into one, where one alone does not show the state."""
    env_option: EnvOption = ()
    """An argument of a Gymnasium environment, such as obs_type=ram; may be given several times."""
    num_envs: NumEnvs = 1
    """Step so many Gymnasium environments together, as a vector environment; the transitions are shared among them."""
    reset_seed: ResetSeed = None
    """Reset every episode of a Gymnasium environment with this seed: what a reset draws, such as a layout, stays."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, option("DIR", "runs/learn-SOURCE")] = None
    """Folder to write."""
    overwrite: Flag = False
    """Replace a run in the folder that was interrupted."""
    log: Annotated[
        tuple[Literal["tensorboard", "wandb"], ...], tyro.conf.UseAppendAction, option("{tensorboard,wandb}", "none")
    ] = ()
    """Write metrics there too, into the run's folder; may be given twice. wandb stays offline unless WANDB_MODE is set
    to something else."""
    no_report: Flag = False
    """Leave out report.html, the page that shows the run."""
    json: Flag = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        """Learn and write the run, or resume one; of several processes, the first writes."""
        from lapwing.storage.run_configuration import FINISHED, RunConfiguration

        lw.training.join_processes()
        if self.resume is not None:
            arguments, configuration = _resumed(self, self.resume)
            if configuration.status == FINISHED:
                return _show_finished(arguments, self.resume) if lw.training.is_first_process() else 0
            return _learn(arguments, configuration, resuming=True)
        if not self.source:
            raise ArgumentError("name what to learn, e.g. `lapwing learn Rooms-16`; `lapwing worlds` lists the worlds")
        options = {} if self.config is None else read_options(self.config)
        return _learn(self, RunConfiguration("learn", {}, options, typed_command()), resuming=False)

    @property
    def label(self) -> str:
        """The name of the world or of the data folder."""
        return Path(self.source).resolve().name if self.is_data else self.source.removeprefix(GYMNASIUM_PREFIX)

    @property
    def is_data(self) -> bool:
        """Whether the source is recorded experience."""
        return is_data(self.source)

    def folders(self, out: Path) -> list[Path]:
        """Where the model of each seed goes: a single one into the run folder itself."""
        seed = self.seed or 0
        return [out] if self.seeds == 1 else [out / f"seed-{number}" for number in range(seed, seed + self.seeds)]


def read_options(path: Path) -> dict[str, Any]:
    """Read a configuration file.

    Args:
        path: a .json or .toml file of learning options by name.

    Returns:
        The options as JSON types; names and values are checked where they are used.
    """
    from lapwing.storage.reading import MAX_MANIFEST_BYTES, read_bytes, read_record

    if path.suffix.lower() == ".json":
        return read_record(path)
    if path.suffix.lower() != ".toml":
        raise ArgumentError(f"{path}: a configuration file is a .json or .toml file")
    import tomllib

    try:
        return tomllib.loads(read_bytes(path, MAX_MANIFEST_BYTES).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is not readable TOML ({error})") from error


def _learn(arguments: LearnCommand, configuration: "RunConfiguration", *, resuming: bool) -> int:
    from lapwing.cli.results import show_results
    from lapwing.report.run_folder import refuse_foreign
    from lapwing.storage.folders import locked

    if not 1 <= arguments.seeds <= MAX_SEEDS:
        raise ArgumentError(f"--seeds is how many, from 1 to {MAX_SEEDS}; got {arguments.seeds}")
    out = arguments.out or Path("runs") / f"learn-{file_name(arguments.label)}"
    # Before any work: an option that is wrong or a package that is missing is better known at once.
    learner = _learner(arguments, configuration.options)
    arguments = replace(arguments, dim=learner.config.dim, seed=learner.config.seed, preset=learner.preset)
    configuration = msgspec.structs.replace(configuration, arguments=_stored(arguments))
    stoppable = lw.training.termination_as_interrupt()
    if not lw.training.is_first_process():
        with stoppable:
            return _learn_along(arguments, learner, out)
    with stoppable, ExitStack() as held, ExitStack() as opened:
        with lw.training.first_process_first():
            refuse_foreign(out, besides=lw.training.LOGGERS)
            held.enter_context(locked(out))
            held.enter_context(_recorded(arguments, configuration, out, resuming=resuming))
            chosen = [lw.training.LOGGERS[name](out) for name in dict.fromkeys(arguments.log)]
            loggers = [opened.enter_context(logger) for logger in chosen]
            data, truth = _data_and_ground_truth(arguments, learner.config.dim, out)
        models = _models(arguments, learner, data, truth, loggers, out)
        opened.close()
        with lw.training.first_process_first(), terminal.spinner("scoring, drawing, writing"):
            results = _written(arguments, models, out, data, truth, configuration.typed)
        code = show_results(results, arguments.label, out, out / PAGE, as_json=arguments.json, new=True)
    if not (arguments.no_report or arguments.json):
        print(f"Open it in a browser: {(out / PAGE).resolve().as_uri()}")
    return code


def _learn_along(arguments: LearnCommand, learner: "lw.Learner", out: Path) -> int:
    """What a process other than the first does: it learns the same, and writes and shows nothing."""
    with lw.training.first_process_first():
        data, _ = _data_and_ground_truth(arguments, learner.config.dim, out)
    _fitted(arguments, learner, data, out)
    # The processes must end together, and the first has still to write.
    with lw.training.first_process_first():
        return 0


def _learner(arguments: LearnCommand, options: dict[str, Any]) -> "lw.Learner":
    """default < preset < configuration file < flags that were given."""
    known = {"preset", *(field.name for field in fields(lw.training.LearnConfig))}
    given = {name: value for name, value in vars(arguments).items() if name in known and value is not None}
    if arguments.all_steps:
        given["stop_when_converged"] = False
    if arguments.start is not None:
        given["start"] = lw.load(arguments.start)
    return lw.Learner(**{"preset": "default", **options, **given})


def _data_and_ground_truth(
    arguments: LearnCommand, dim: int, out: Path
) -> "tuple[lw.training.Data, lw.LaplacianRepresentation | None]":
    """What to learn from, and the ground truth where there is one; of several processes, the first solves it."""
    from lapwing.data.trajectories import MANIFEST
    from lapwing.storage.run_configuration import EXPERIENCE

    def ground_truth(source: Any, **options: Any) -> "lw.LaplacianRepresentation | None":
        if not lw.training.is_first_process():
            return None
        with terminal.spinner("solving for the ground truth") as say:
            return lw.solve(source, dim, say=say, **options)

    of_environment: dict[str, Any] = {name: getattr(arguments, name) for name in OF_ENVIRONMENTS}
    if arguments.is_data:
        if arguments.exact or arguments.slip is not None or arguments.observation is not None:
            raise ArgumentError("--exact, --slip and --observation are for worlds; a data folder is taken as it is")
        refuse_environment_options(**of_environment)
        data = _with_keys(read_data(arguments.source), arguments.keys)
        world = lw.environments.world_from_description(data.metadata.get("world"))
        return data, None if world is None else ground_truth(world)
    options: dict[str, Any] = {name: getattr(arguments, name) for name in ("observation", "slip", "layouts")}
    in_gymnasium = arguments.source.startswith(GYMNASIUM_PREFIX)
    # Own worlds repeat their experience; that of other environments is kept, to resume from without making them again.
    kept = out / EXPERIENCE if in_gymnasium and not arguments.exact else None
    if kept is not None and (kept / MANIFEST).is_file():
        return read_data(kept), None
    source, label = collection_source(arguments.source, **of_environment)
    truth = None if in_gymnasium else ground_truth(source, **options)
    if arguments.exact:
        return lw.operator(source, **options), truth
    with terminal.progress_bar(f"collecting from {label}") as progress:
        seed = arguments.seed or 0
        options["keys"] = arguments.keys
        return lw.collect(source, arguments.data_steps, seed=seed, out=kept, progress=progress, **options), truth


def _with_keys(data: "lw.Trajectories", keys: Sequence[str] | None) -> "lw.Trajectories":
    """Recorded experience with the observations of the chosen keys."""
    if keys is None:
        return data
    if not data.keys:
        raise ArgumentError("--keys is for observations of several keys; this data set has one")
    return data.select(keys)


def _models(
    arguments: LearnCommand,
    learner: "lw.Learner",
    data: "lw.training.Data",
    truth: "lw.LaplacianRepresentation | None",
    loggers: Sequence[Callable[..., None]],
    out: Path,
) -> "list[lw.LaplacianRepresentation]":
    """Learn, with progress on the screen and in the loggers."""
    import numpy as np

    quality = "angle" if truth is None else "cosine"
    columns = ["step", "largest angle" if truth is None else "similarity", "loss", "barrier"]
    with terminal.live_table(f"learning {arguments.label}", columns) as show:

        def report(line: "lw.training.Progress") -> None:
            terms = (line.metrics["loss"], line.metrics.get("barrier", np.nan))
            numbers = [line.summary.get(quality), *(float(np.mean(term)) for term in terms)]
            cells = ["-" if number is None or np.isnan(number) else f"{number:.4f}" for number in numbers]
            show(line.step, line.steps, [f"{line.step:,}", *cells])
            for logger in loggers:
                logger(line)

        return _fitted(arguments, learner, data, out, truth=truth, callback=report)


def _fitted(
    arguments: LearnCommand, learner: "lw.Learner", data: "lw.training.Data", out: Path, **reporting: Any
) -> "list[lw.LaplacianRepresentation]":
    """One model per seed; after a divergence or collapse, what is left of it."""
    from lapwing.storage.run_configuration import CHECKPOINTS

    seeds = list(range(learner.config.seed, learner.config.seed + arguments.seeds))
    try:
        return learner.fit_many(data, seeds, checkpoints=out / CHECKPOINTS, **reporting)
    except (lw.training.LearningDivergedError, lw.training.NetworkCollapsedError) as error:
        if not error.models:
            raise
        # It names its problems, and is written like any other result.
        return error.models


def _written(
    arguments: LearnCommand,
    models: "Sequence[lw.LaplacianRepresentation]",
    out: Path,
    data: "lw.training.Data",
    truth: "lw.LaplacianRepresentation | None",
    typed: list[str],
) -> "list[Result]":
    """Write every run and the page that shows them; what they share is computed once."""
    from lapwing.cli.results import Result
    from lapwing.report.run_folder import audit_record, tabular_baseline, write_run

    baseline = tabular_baseline(data, models[0].dim)
    audit = audit_record(data) if isinstance(data, lw.Trajectories) else None
    shared = {} if truth is None or baseline is None else {"baseline": lw.score(baseline, truth)}
    results = []
    for model, folder in zip(models, arguments.folders(out), strict=True):
        scores = {} if truth is None else {"learned": lw.score(model, truth), **shared}
        files = write_run(
            model, folder, data=data, audit=audit, truth=truth, baseline=baseline, scores=scores, command=typed
        )
        results.append(Result(model, folder, scores, files))
    if not arguments.no_report:
        from lapwing.report import write_report

        page = write_report([result.folder for result in results], out / PAGE, models=models)
        if len(results) == 1:
            results[0].files.append(page)
    return results


# --- run.json: what a run was started with, and resuming --------------------------------------------------------------


def _stored(arguments: LearnCommand) -> dict[str, Any]:
    """Arguments as JSON types, with paths that hold wherever the run is resumed from."""
    # A folder of a world's name, such as the run itself, does not make the world a path.
    path = Path(arguments.source)
    is_path = arguments.is_data or (path.suffix == ".txt" and path.is_file())
    named = arguments.layouts or os.environ.get(lw.environments.LAYOUTS_VARIABLE)
    lasting = {
        "source": str(path.resolve()) if is_path else arguments.source,
        "layouts": None if named is None else str(Path(named).resolve()),
        "start": None if arguments.start is None else str(arguments.start.resolve()),
    }
    # Where the run is, and what concerns one call only, is not part of it.
    left_out = ("out", "resume", "config", "overwrite", "json")
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(arguments).items()}
    return {name: value for name, value in (plain | lasting).items() if name not in left_out}


def _from_stored(folder: Path, configuration: "RunConfiguration") -> LearnCommand:
    """The arguments in ``run.json``, a file that may be damaged or forged: only what :func:`_stored` writes is read."""
    from lapwing.storage.run_configuration import RUN_FILE

    damaged = f"{folder / RUN_FILE} is damaged or forged"
    expected = _stored(LearnCommand())
    if configuration.command != "learn" or set(configuration.arguments) != set(expected):
        raise DamagedFileError(f"{damaged}: it does not hold the arguments of `lapwing learn`; begin the run again")
    try:
        found = msgspec.convert(configuration.arguments, LearnCommand, dec_hook=_as_path)
    except msgspec.ValidationError as error:
        raise DamagedFileError(f"{damaged}: {error}; begin the run again") from error
    if not found.source or found.dim is None or found.seed is None or not 1 <= found.seeds <= MAX_SEEDS:
        raise DamagedFileError(f"{damaged}: source, dim, seed or seeds cannot be; begin the run again")
    return found


def _refuse_code(arguments: LearnCommand, folder: Path) -> None:
    """Raise an error where experience must be collected again from code that ``run.json`` names.

    The module named before a colon is imported: a file must not choose which code is run. Where the experience is kept,
    nothing is imported.
    """
    is_environment = arguments.source.startswith(GYMNASIUM_PREFIX)
    names = [arguments.source.removeprefix(GYMNASIUM_PREFIX)] if is_environment else []
    for name in (*names, *arguments.wrappers):
        if ":" in name:
            raise DamagedFileError(
                f"{folder} was to be learned from {name}, which names code to import, and its experience was not "
                "collected yet; a file is not allowed to choose code: type the whole command again, with --overwrite"
            )


def _as_path(kind: type, value: object) -> Path:
    if kind is not Path or not isinstance(value, str):
        raise ValueError("expected the path of a file")
    return Path(value)


def _resumed(given: LearnCommand, folder: Path) -> "tuple[LearnCommand, RunConfiguration]":
    """The arguments a run was started with, shown as ``given`` asks."""
    from lapwing.data.trajectories import MANIFEST
    from lapwing.storage.run_configuration import EXPERIENCE, FINISHED, read_configuration

    others = [
        one.name for one in fields(given) if one.name not in WITH_RESUME and getattr(given, one.name) != one.default
    ]
    if others:
        name = "SOURCE" if others[0] == "source" else f"--{others[0].replace('_', '-')}"
        raise ArgumentError(f"--resume uses the arguments that {folder} was started with; leave {name} out")
    configuration = read_configuration(folder)
    if configuration is None:
        raise ArgumentError(f"{folder} holds no run that `lapwing learn` started; start one without --resume")
    original = _from_stored(folder, configuration)
    if configuration.status != FINISHED and not (folder / EXPERIENCE / MANIFEST).is_file():
        _refuse_code(original, folder)
    return replace(
        original, out=folder, json=given.json, no_report=given.no_report or original.no_report
    ), configuration


def _show_finished(arguments: LearnCommand, out: Path) -> int:
    """Print a run that has ended, as it was written; its scores are in its files."""
    from lapwing.cli.results import Result, show_results

    folders = arguments.folders(out)
    results = [Result(lw.load(folder), folder, {}, sorted(folder.glob("[!.]*.*"))) for folder in folders]
    code = show_results(results, arguments.label, out, out / PAGE, as_json=arguments.json, new=False)
    terminal.note(f"the run in {out} had ended; nothing was left to do")
    return code


@contextmanager
def _recorded(
    arguments: LearnCommand, configuration: "RunConfiguration", out: Path, *, resuming: bool
) -> Iterator[None]:
    """Keep ``run.json`` while a run is carried out; nothing is left where it came to nothing."""
    from lapwing.report.run_folder import clear_run, sweep
    from lapwing.storage import run_configuration as storage

    sweep(out)
    earlier = _earlier_runs(out)
    if not resuming:
        if not arguments.overwrite:
            storage.refuse_unfinished(out)
        storage.remove_configuration(out)
    try:
        if not resuming:
            storage.write_configuration(out, configuration)
        yield
    except (LapwingError, KeyboardInterrupt) as error:
        if not storage.has_progress(out):
            storage.remove_configuration(out)
        elif isinstance(error, (KeyboardInterrupt, CannotWriteError)):
            reached = "stopped" if isinstance(error, KeyboardInterrupt) else str(error)
            if isinstance(error, lw.training.LearningInterruptedError):
                reached = f"stopped after {error.step:,} of {error.steps:,} steps"
            error.args = (f"{reached}; resume with: lapwing learn --resume {shlex.quote(str(out))}",)
        raise
    for old in earlier - set(arguments.folders(out)):
        clear_run(old)
    storage.write_configuration(out, msgspec.structs.replace(configuration, status=storage.FINISHED))


def _earlier_runs(out: Path) -> set[Path]:
    """Runs that an earlier command left here, and that the next one replaces: the folder's own and its seeds'.

    Only those that ``run.json`` lists: other folders of such a name, or links in their place, are not part of the run.
    """
    from lapwing.storage.run_configuration import RUN_FILE, read_configuration

    try:
        configuration = read_configuration(out)
        seeds = [] if configuration is None else _from_stored(out, configuration).folders(out)
    except LapwingError:
        seeds = []
    return {out, *(folder for folder in seeds if not (folder.is_symlink() or (folder / RUN_FILE).exists()))}
