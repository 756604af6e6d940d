"""The page that shows runs: from the files of run folders to one self-contained HTML file."""

from lapwing.report.live_progress import show_progress
from lapwing.report.page import write_report
from lapwing.report.stored_run import StoredRun, read_run

__all__ = ["StoredRun", "read_run", "show_progress", "write_report"]
