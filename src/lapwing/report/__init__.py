"""The page that shows runs: from the files of run folders to one self-contained HTML file."""

from lapwing.report.page import write_report
from lapwing.report.stored_run import StoredRun, read_run

__all__ = ["StoredRun", "read_run", "write_report"]
