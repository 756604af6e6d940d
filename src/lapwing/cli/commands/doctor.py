"""Help: ``lapwing doctor``."""

from lapwing.cli import terminal
from lapwing.cli.examination import EXTRAS, TINY_WORLD, Findings, examine
from lapwing.cli.words.doctor import Doctor
from lapwing.environments.registry import LAYOUTS_VARIABLE
from lapwing.errors import LapwingError


def run_doctor(words: Doctor) -> None:
    """Look the installation over; an error if anything that is needed is missing or does not work."""
    with terminal.spinner("looking"):
        found = examine()
    if words.json:
        terminal.print_json(found.as_dict())
    else:
        _show(found)
    for problem in found.problems:
        terminal.note(f"{problem.what}; {problem.advice}")
    if found.problems:
        count = len(found.problems)
        raise LapwingError(f"{count} problem{'s' if count > 1 else ''}, see the advice above")


def _show(found: Findings) -> None:
    packages = [("python", found.python), *((name, known or "MISSING") for name, known in found.packages.items())]
    terminal.print_facts("Installed", packages)
    extras = [
        [
            name,
            found.extras[name] or "-",
            purpose if found.extras[name] else f"pip install 'lapwing[{name}]': {purpose}",
        ]
        for name, (_, purpose) in EXTRAS.items()
    ]
    browser = [["(browser)", found.browser or "-", "tests of the report page, nothing else"]]
    terminal.print_table("Extras, none of them needed", ["extra", "version", "for"], extras + browser)
    memory = "unknown" if found.memory_gib is None else f"{found.memory_gib:g} GiB"
    folder = found.layouts_folder
    machine = [
        ("system", found.platform),
        ("devices JAX sees", ", ".join(found.devices) or "none"),
        ("cores", str(found.cores)),
        ("memory", memory),
        (LAYOUTS_VARIABLE, "not set" if folder is None else f"{folder} ({found.layouts} layouts)"),
    ]
    terminal.print_facts("Machine", machine)
    if found.tiny_run is not None:
        run = found.tiny_run
        print(
            f"tiny run in {TINY_WORLD}: solved in {run['solve_seconds']:.1f} s, "
            f"learned in {run['learn_seconds']:.1f} s (compiling included), cosine {run['cosine']:.4f}"
        )
    if not found.problems:
        print("all is well")
