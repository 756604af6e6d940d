"""What the campaign attacks: learning by both kinds of batches, with one seed and with several."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from safetensors.numpy import load

from lapwing.storage.checkpoints import checkpoint_files

LAPWING = [sys.executable, "-m", "lapwing"]
SEVERAL_SEEDS = Path(__file__).with_name("several_seeds.py")
PATIENCE = 600.0


@dataclass(frozen=True)
class Subject:
    """Learning that can be begun in a folder and gone on with.

    Attributes:
        name: in the table.
        begin: the command that starts it; ``{}`` stands for the folder.
        resume: the command that resumes it.
        says_how: whether it prints the command that resumes it when it is stopped.
    """

    name: str
    begin: tuple[str, ...]
    resume: tuple[str, ...]
    says_how: bool

    def start(self, folder: Path, *, going_on: bool = False) -> "subprocess.Popen[str]":
        """A process that learns in the folder."""
        command = [word.format(folder) for word in (self.resume if going_on else self.begin)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def is_begun(self, folder: Path) -> bool:
        """Whether there is something to resume."""
        return not self.says_how or (folder / "run.json").exists()

    def checkpoints(self, folder: Path) -> list[Path]:
        """Those in the folder, the newest first."""
        return checkpoint_files(folder / "checkpoints")

    def result(self, folder: Path) -> dict[str, bytes]:
        """All that must be the same to the last bit: models, metrics, and the last state with its duals."""
        files = [*folder.glob("**/model.safetensors"), *folder.glob("**/metrics.csv")]
        found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
        last = load(self.checkpoints(folder)[0].read_bytes())
        return found | {name: array.tobytes() for name, array in last.items()}


def _on_the_command_line(name: str, *arguments: str) -> Subject:
    begin = (*LAPWING, "learn", "GridMaze-9", "--dim", "5", "--all-steps", "--no-report", *arguments, "--out", "{}")
    return Subject(name, begin, (*LAPWING, "learn", "--resume", "{}"), True)


def _in_python(name: str, kind: str) -> Subject:
    command = (sys.executable, str(SEVERAL_SEEDS), kind, "{}")
    return Subject(name, command, command, False)


SUBJECTS = (
    _on_the_command_line("exact, one seed", "--steps", "6000", "--log-every", "250"),
    _on_the_command_line("sampled, one seed", "--preset", "paper", "--steps", "6000", "--log-every", "250"),
    _in_python("exact, three seeds", "exact"),
    _in_python("sampled, three seeds", "sampled"),
    _on_the_command_line("exact, 3 seeds by command", "--seeds", "3", "--steps", "6000", "--log-every", "250"),
)


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """The exit code and what was said on standard error, in one line."""
    error = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, " ".join(error.split())


def wait_until(process: "subprocess.Popen[str]", condition: Callable[[], bool]) -> bool:
    """Whether the condition came true before the process ended."""
    while process.poll() is None:
        if condition():
            return True
        time.sleep(0.02)
    return False
