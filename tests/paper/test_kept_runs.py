"""The finished runs that the repository keeps: whole, without layouts, and enough to rebuild a table."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing_paper.run_store import DIGEST, MANIFEST, record_checksum

KEPT = Path(__file__).resolve().parents[2] / "studies" / "runs"
MANIFESTS = sorted(KEPT.glob(f"*/{MANIFEST}"))


def test_there_are_some_of_a_size_that_a_repository_bears() -> None:
    assert len(MANIFESTS) >= 10
    assert sum(path.stat().st_size for path in KEPT.rglob("*") if path.is_file()) < 60_000 * len(MANIFESTS)


def test_every_kept_run_is_whole_and_carries_no_layout() -> None:
    for path in MANIFESTS:
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record.pop("checksum") == record_checksum(record), path
        assert record["status"] == "done", path
        world = record["run"]["world"]
        assert world is None or world.get("layout", DIGEST).startswith(DIGEST), path
        components = [one.name for one in path.parent.iterdir() if one.name != MANIFEST]
        assert components == ([record["components"]] if record["components"] else []), path


@pytest.mark.slow
def test_a_table_is_rebuilt_from_them_without_a_run(run: Any, tmp_path: Path) -> None:
    shutil.copytree(KEPT, tmp_path / "runs")
    result = run(f"reproduce online-policies --full --seeds 5 --worlds GridRoom-1 --rebuild --out {tmp_path}")
    assert result.code == 0, result.err
    tables = json.loads((tmp_path / "online-policies" / "online-policies.json").read_text())["tables"]
    row = next(one for one in tables["online-policies"] if one["representation"] == "default")
    records = [json.loads(path.read_text()) for path in MANIFESTS]
    cosines = [
        one["numbers"]["cosine"]
        for one in records
        if one["run"]["task"] == "online-policies"
        and one["run"]["world"]["name"] == "GridRoom-1"
        and one["run"]["settings"]["options"] == {"batch_size": 256}
        and one["run"]["settings"]["updates"] > 0
        and one["run"]["settings"]["window"] == 10_000
        and not one["run"]["settings"]["seen"]
    ]
    assert len(cosines) == 5
    assert row["cosine"] == f"{np.mean(cosines):.4f} ({np.std(cosines, ddof=1):.4f})"


@pytest.mark.slow
def test_table_1_is_rebuilt_at_the_papers_length(run: Any, tmp_path: Path) -> None:
    # The geometry of this world is the paper's own, so that its runs are found without the authors' layouts.
    command = "reproduce comparison-xy --full --seeds 1 --worlds GridMaze-7 --rebuild"
    result = run(f"{command} --out {KEPT.parent} --pages {tmp_path}")
    assert result.code == 0, result.err
    (row,) = json.loads((tmp_path / "comparison-xy.json").read_text())["tables"]["table-1"]
    records = [json.loads(path.read_text()) for path in KEPT.glob(f"learn-GridMaze-7-seed0-*/{MANIFEST}")]
    for method in ("ALLO", "GGDO"):
        (cosine,) = (
            one["numbers"]["cosine"]
            for one in records
            if one["run"]["settings"]["options"].get("objective") == method.lower()
            and one["run"]["settings"]["options"]["steps"] == 200_000
        )
        assert row[method] == f"{cosine:.4f}"
