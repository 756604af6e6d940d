"""The campaign: kills, damaged files and failing disks against learning, studies and data, for a chosen time.

``make soak SECONDS=600`` or ``python benchmarks/soak --seconds 600 --seed 0``. Prints a row per kind of fault; exits
with 1 if anything was lost.
"""

import argparse
import itertools
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from disks import can_mount, disk
from folder_faults import FOLDER_FAULTS, OtherFault
from learning_faults import LEARNING_FAULTS, BrokenPromiseError, Fault, NotHitError
from study_faults import STUDY_FAULTS
from subjects import SUBJECTS, Subject, finish

INJECTED, SURVIVED, LOST, IDENTICAL, COMPARED = "injected", "survived", "lost", "identical", "compared"


class Campaign:
    """The tally of faults, and the results of learning never interrupted that ends are compared with."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.rng = root, random.Random(seed)
        self.tally: dict[str, Counter[str]] = {}
        self.numbers = itertools.count()
        self.references: dict[str, tuple[dict[str, bytes], float]] = {}

    def reference(self, subject: Subject) -> tuple[dict[str, bytes], float]:
        """The result of a subject left in peace, and its seconds; made once."""
        if subject.name not in self.references:
            folder, began = self.root / f"reference-{len(self.references)}", time.monotonic()
            code, said = finish(subject.start(folder))
            if code != 0:
                sys.exit(f"{subject.name} fails without any fault: {said}")
            self.references[subject.name] = subject.result(folder), time.monotonic() - began
        return self.references[subject.name]

    def attack_learning(self, fault: Fault, subject: Subject) -> None:
        """One fault against one subject."""
        wanted, seconds = self.reference(subject)
        folder = self.root / f"run-{next(self.numbers)}"

        def work() -> bool:
            with disk(folder) if fault.on_own_disk else nullcontext():
                fault.inject(subject, folder, self.rng, seconds)
                return subject.result(folder) == wanted

        self.count(fault.name, subject.name, work)
        shutil.rmtree(folder, ignore_errors=True)

    def attack_other(self, fault: OtherFault) -> None:
        """A fault that brings its own subject and its own comparison."""
        folder = self.root / f"run-{next(self.numbers)}"
        folder.mkdir()
        with disk(folder) if fault.on_own_disk else nullcontext():
            self.count(fault.name, "", lambda: fault.inject(folder, self.rng))
        shutil.rmtree(folder, ignore_errors=True)

    def count(self, name: str, against: str, work: Callable[[], bool]) -> None:
        """Carry out one attack and add it to the tally; ``work`` says whether the end was the same to the bit."""
        row = self.tally.setdefault(name, Counter())
        began = time.monotonic()
        try:
            same = work()
        except NotHitError:
            print(f"{name:<34} {against:<22} came too late, not counted", flush=True)
            return
        except (BrokenPromiseError, OSError, KeyError, IndexError) as error:
            row.update([INJECTED, LOST])
            print(f"{name:<34} {against:<22} LOST: {type(error).__name__}: {error}", flush=True)
            return
        row.update([INJECTED, COMPARED, *([SURVIVED, IDENTICAL] if same else [LOST])])
        outcome = "survived, same bits" if same else "LOST: the end differs"
        print(f"{name:<34} {against:<22} {outcome} ({time.monotonic() - began:.0f} s)", flush=True)

    def table(self) -> str:
        """Faults by kind, survived, lost, and ends that were the same to the bit."""
        lines = [f"{'fault':<34} {'injected':>8} {'survived':>8} {'lost':>5} {'bit-identical ends':>19}"]
        total: Counter[str] = Counter()
        for name, row in [*self.tally.items(), ("all", total)]:
            ends = f"{row[IDENTICAL]} of {row[COMPARED]}"
            lines.append(f"{name:<34} {row[INJECTED]:>8} {row[SURVIVED]:>8} {row[LOST]:>5} {ends:>19}")
            total.update(row)
        return "\n".join(lines)


def main() -> int:
    """Attack until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only faults whose name holds this")
    options = parser.parse_args()
    # Disks are taken away again, however the campaign ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="lapwing-soak-") as root:
        campaign = Campaign(Path(root), options.seed)
        end = time.monotonic() + options.seconds
        kinds = [one for one in (*LEARNING_FAULTS, *FOLDER_FAULTS, *STUDY_FAULTS) if options.only in one.name]
        if not can_mount():
            print("no right to mount: faults of disks are left out")
            kinds = [fault for fault in kinds if not fault.on_own_disk]
        rounds = itertools.count()
        while kinds and time.monotonic() < end:
            number = next(rounds)
            for place, fault in enumerate(campaign.rng.sample(kinds, len(kinds))):
                if time.monotonic() >= end:
                    break
                if fault in LEARNING_FAULTS:
                    campaign.attack_learning(fault, SUBJECTS[(number + place) % len(SUBJECTS)])
                else:
                    campaign.attack_other(fault)
        print(campaign.table())
        return 1 if sum(row[LOST] for row in campaign.tally.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
