"""The page that shows what was learned: from the files of a run to one self-contained HTML file."""

from lapwing.report.page import write_report

__all__ = ["write_report"]
