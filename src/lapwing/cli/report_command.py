"""``lapwing report``: one HTML page about one run or several."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, Runs, option, run_folders
from lapwing.errors import ArgumentError


@dataclass(frozen=True)
class ReportCommand:
    """Write one HTML page that shows a run, or that compares several; it opens without a network.

    Example: lapwing report demo --out demo.html
    """

    runs: Runs
    """Folders that `lapwing learn` or `lapwing solve` wrote."""
    out: Annotated[Path | None, option("FILE.html", "RUN/report.html, for several runs report.html")] = None
    """File to write."""
    json: Flag = False
    """Print JSON instead of where the page is."""

    def run(self) -> None:
        """Write the page."""
        runs = run_folders(self.runs)
        out = self.out or (self.runs[0] / "report.html" if len(self.runs) == 1 else Path("report.html"))
        if not out.is_dir() and out.suffix.lower() not in (".html", ".htm"):
            raise ArgumentError(f"{out}: a report is an .html file")
        from lapwing.report import write_report

        with terminal.spinner("writing the page"):
            page = write_report(runs, out)
        if self.json:
            terminal.print_json({"report": str(page), "runs": [str(run) for run in runs]})
            return
        print(f"wrote {page}")
        print(f"Open it in a browser: {page.resolve().as_uri()}")
