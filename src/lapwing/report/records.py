"""Records of a run, checked field by field when they are read: a page is made of sound numbers or not at all."""

from dataclasses import fields
from math import prod
from typing import Any, get_args

from lapwing.data.audit import Audit
from lapwing.errors import LapwingError
from lapwing.evaluation.score import Score
from lapwing.storage.records import DAMAGED, Record

KINDS_OF_VISITS = ("states", "cells", "rows")


def audit_from(record: Record) -> Audit:
    """The audit that :meth:`lapwing.data.audit.Audit.as_dict` wrote."""
    warnings = record.texts("warnings")
    facts: dict[str, Any] = {}
    for one in fields(Audit):
        if one.name == "warnings":
            continue
        kinds = get_args(one.type) or (one.type,)
        if type(None) in kinds and one.name in record.content and not record.has(one.name):
            facts[one.name] = None
        else:
            facts[one.name] = record.whole(one.name, least=0) if int in kinds else record.number(one.name)
    found = Audit(**facts, warnings=tuple(warnings))
    try:
        found.rows()
    except TypeError:
        raise LapwingError(f"{record.where} tells of some states and not of others; {DAMAGED}") from None
    return found


def check_audit(record: Record) -> None:
    """Refuse an audit whose facts, visits or episode lengths are not numbers that fit together."""
    audit_from(record)
    if record.has("visits_of"):
        visits = record.wholes("visits", least=0)
        shape = record.wholes("visits_shape", least=1) if record.has("visits_shape") else [len(visits)]
        if record.text("visits_of") not in KINDS_OF_VISITS or prod(shape) != len(visits) or not visits:
            raise LapwingError(f"{record.where}: its visits do not fit together; {DAMAGED}")
    if record.has("episode_lengths"):
        lengths = record.record("episode_lengths")
        counts = lengths.wholes("counts", least=0)
        places = lengths.wholes("lengths", least=0) if lengths.has("lengths") else lengths.numbers("edges")[1:]
        if len(places) != len(counts):
            raise LapwingError(f"{record.where}: its episode lengths do not fit together; {DAMAGED}")


def check_scores(record: Record) -> None:
    """Refuse scores that lack a field or hold anything but numbers."""
    if record.has("learned"):
        learned = record.record("learned")
        for name in ("cosine", "subspace_cosine", "mean_eigenvalue_error", "tolerance"):
            learned.number(name)
        learned.numbers("subspace_cosines")
        learned.text("definition")
        if missing := {one.name for one in fields(Score)} - set(learned.content):
            raise LapwingError(f"{learned.where} lacks the field {min(missing)!r}; {DAMAGED}")
    if record.has("baseline"):
        record.record("baseline").number("subspace_cosine")
    if record.has("baseline_eigenvalues"):
        counted = record.record("baseline_eigenvalues")
        counted.text("definition")
        counted.numbers("values")


def check_made(record: Record) -> None:
    """Refuse a command that is no list of words, and versions that are no record."""
    if record.has("command"):
        record.texts("command")
    if record.has("versions"):
        record.record("versions")
    if record.has("date"):
        record.text("date")
