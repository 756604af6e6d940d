"""Experience that never ends, in bounded memory: the last states of a stream, or a uniform sample of all of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_whole, shown
from lapwing.data.loading import as_flags, as_rows
from lapwing.data.packing import RowFormat
from lapwing.data.trajectories import (
    DECIDE_AFTER,
    MIN_DECIDABLE,
    MIN_REPEATS,
    ObservationTable,
    Trajectories,
    check_finite,
    tabulated,
)
from lapwing.errors import ArgumentError, DamagedFileError, DataError

# States of a block at most, and blocks of a buffer at least: what is forgotten is forgotten a block at a time.
BLOCK_STATES = 256
FEWEST_BLOCKS = 32
KEEP = ("window", "reservoir")

Columns = dict[str, NDArray[Any]]
"""``rows``, the observations or their numbers in the table; ``ends`` and ``terminated``, booleans; and ``actions``."""


class Block(NamedTuple):
    """Consecutive states of one stream; one block continues the block before it in its stream.

    Attributes:
        stream: which stream.
        number: of the block in its stream.
        columns: one entry per state each.
    """

    stream: int
    number: int
    columns: Columns


class ExperienceBuffer:
    """States of one or several streams, of which at most ``capacity`` are kept.

    A window keeps the last ones. A reservoir keeps blocks of consecutive states, each block of the past with the same
    probability, so that nothing is forgotten for being old. Observations that repeat are stored once.

    Args:
        capacity: how many states to keep at most, all streams together.
        keep: ``window`` or ``reservoir``.
        seed: of what a reservoir keeps.

    Example:
        >>> buffer = ExperienceBuffer(capacity=100)
        >>> buffer.add(np.arange(300.0), np.arange(300) % 50 == 49)
        >>> buffer.seen, buffer.data().num_states <= 100
        (300, True)
    """

    def __init__(self, capacity: int, keep: str = "window", seed: int = 0) -> None:
        """Start empty."""
        states = as_whole(capacity)
        if states is None or states < 2:
            raise ArgumentError(f"capacity must be a whole number of at least 2 states, got {shown(capacity)}")
        if keep not in KEEP:
            raise ArgumentError(f"keep must be one of {', '.join(KEEP)}; got {shown(keep)}")
        self.capacity, self.keep, self.seed = states, keep, seed
        self.seen = 0
        self._block_states = max(2, min(BLOCK_STATES, states // FEWEST_BLOCKS))
        self._blocks: list[Block] = []
        self._finished = 0
        # Of each stream the states that do not fill a block yet, how many they are, and which block they will be.
        self._open: dict[int, list[Columns]] = {}
        self._waiting: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._layout: RowFormat | None = None
        # No states, but columns of the types and shapes that all states have.
        self._like: Columns = {}
        # Distinct observations, as long as they are worth it; how many states were looked up, and when to try again.
        self._table: ObservationTable | None = ObservationTable()
        self._looked_up, self._try_again = 0, 0

    @property
    def num_states(self) -> int:
        """How many states are held."""
        return sum(self._waiting.values()) + sum(len(block.columns["ends"]) for block in self._blocks)

    def add(
        self,
        observations: "ArrayLike | Mapping[str, ArrayLike]",
        episode_ends: "ArrayLike | None" = None,
        *,
        terminated: "ArrayLike | None" = None,
        actions: "ArrayLike | None" = None,
        stream: int = 0,
    ) -> None:
        """Add states in order of time; they continue what was added to the same stream before.

        Args:
            observations: (n, ...) of any numeric type, or a dictionary of such arrays.
            episode_ends: (n,) true at the last state of an episode, so that no pair crosses it; none unless given.
            terminated: (n,) true where the environment itself ended the episode; for options learned from the data.
            actions: (n, ...) the action taken in each state, without a meaning at the last one of an episode.
            stream: which of several environments this is, a whole number from 0.

        Raises:
            DataError: observations of another shape than before, NaN or infinity; the buffer is as before.
        """
        number = as_whole(stream)
        if number is None or number < 0:
            raise ArgumentError(f"stream must be a whole number from 0, got {shown(stream)}")
        layout, rows = self._rows_of(observations)
        count = len(rows)
        none = np.zeros(count, dtype=bool)
        ends = none if episode_ends is None else as_flags(episode_ends, count, "state", "episode_ends")
        over = none if terminated is None else as_flags(terminated, count, "state", "terminated")
        columns: Columns = {"rows": rows, "ends": ends | over, "terminated": over}
        if actions is not None:
            columns["actions"] = as_rows(actions) if np.ndim(actions) > 1 else as_rows(actions)[:, 0]
        columns = self._like_before(columns)
        self._layout, self._like = layout, {name: column[:0] for name, column in columns.items()}
        self.seen += count
        self._open.setdefault(number, []).append(columns)
        self._waiting[number] = self._waiting.get(number, 0) + count
        if self._waiting[number] >= self._block_states:
            self._close_blocks(number)

    def data(self) -> Trajectories:
        """What is held, as experience: episodes in order of time within each stream, cut where states are missing.

        Returns:
            A copy; observations that repeat are a table.

        Raises:
            DataError: where no two consecutive states are held.
        """
        self._consider_table()
        pieces = [block.columns for block in sorted(self._blocks, key=lambda block: block[:2])]
        # Where the next block of the stream is not held, the episode is cut.
        places = sorted(block[:2] for block in self._blocks)
        for stream in sorted(self._open):
            after = int(np.searchsorted([place[0] for place in places], stream, side="right"))
            if self._open[stream]:
                pieces.insert(after, self._numbered(_joined(self._open[stream])))
                places.insert(after, (stream, self._numbers.get(stream, 0)))
        if not pieces:
            raise DataError("no states have been added yet; add observations first")
        columns = _joined(pieces)
        ends = columns["ends"]
        sizes = np.cumsum([len(piece["ends"]) for piece in pieces])
        for here, following, size in zip(places, [*places[1:], None], sizes.tolist(), strict=True):
            if following != (here[0], here[1] + 1):
                ends[size - 1] = True
        # A state alone is no transition.
        first = np.append(True, ends[:-1])
        kept = ~(first & ends)
        columns = {name: column[kept] for name, column in columns.items()}
        offsets = np.append(0, np.flatnonzero(columns["ends"]) + 1)
        if len(offsets) < 2:
            raise DataError("no transition is held yet: an episode needs two states; add more observations")
        return self._trajectories(columns, offsets)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is held, as arrays for a file; :meth:`restored` takes them back.

        Returns:
            Arrays by name.
        """
        open_blocks = [
            Block(stream, self._numbers.get(stream, 0), _joined(pieces))
            for stream, pieces in sorted(self._open.items())
            if pieces
        ]
        found: dict[str, NDArray[Any]] = {}
        # Open ones hold observations, even where the others hold numbers of the table.
        for name, blocks in (("closed", self._blocks), ("open", open_blocks)):
            if blocks:
                found[f"{name}.blocks"] = np.array([(b.stream, b.number, len(b.columns["ends"])) for b in blocks])
                joined = _joined([block.columns for block in blocks])
                found |= {f"{name}.{column}": rows for column, rows in joined.items()}
        found |= {f"like.{name}": column for name, column in self._like.items()}
        found["numbers"] = np.array(sorted(self._numbers.items()), dtype=np.int64).reshape(-1, 2)
        found["counters"] = np.array([self.seen, self._finished, self._looked_up, self._try_again], dtype=np.int64)
        if self._table is not None and len(self._table):
            found["table"] = self._table.array()
        return found

    def record(self) -> dict[str, Any]:
        """What belongs to :meth:`arrays` and is not an array.

        Returns:
            JSON types.
        """
        layout = {} if self._layout is None else self._layout.as_metadata()
        tabulates = self._table is not None
        return {"capacity": self.capacity, "keep": self.keep, "seed": self.seed, "tabulates": tabulates, **layout}

    @classmethod
    def restored(cls, record: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The buffer that was saved.

        Args:
            record: from :meth:`record`.
            arrays: from :meth:`arrays`.

        Returns:
            A buffer that goes on as the saved one would have.

        Raises:
            DamagedFileError: if the parts do not fit together.
        """
        try:
            buffer = cls(record["capacity"], record["keep"], record["seed"])
            buffer._layout = RowFormat.from_metadata(record)
            counters = [int(number) for number in arrays["counters"]]
            buffer.seen, buffer._finished, buffer._looked_up, buffer._try_again = counters
            buffer._numbers = {int(stream): int(number) for stream, number in arrays["numbers"]}
            if not record["tabulates"]:
                buffer._table = None
            elif "table" in arrays:
                assert buffer._table is not None
                buffer._table.lookup(arrays["table"])
            buffer._like = _parts(arrays, "like")
            buffer._blocks = _blocks(arrays, "closed")
            waiting = _blocks(arrays, "open")
            buffer._open = {block.stream: [block.columns] for block in waiting}
            buffer._waiting = {block.stream: len(block.columns["ends"]) for block in waiting}
            return buffer
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise DamagedFileError(f"the experience of an online learner cannot be read ({error})") from error

    def _rows_of(self, observations: Any) -> tuple[RowFormat | None, NDArray[Any]]:
        if not isinstance(observations, Mapping):
            rows = as_rows(observations)
            check_finite(rows, self.seen)
            return None, rows
        given = {str(key): as_rows(part) for key, part in observations.items()}
        for part in given.values():
            check_finite(part, self.seen)
        layout = RowFormat.of(given) if self._layout is None else self._layout
        return layout, layout.pack(given)

    def _like_before(self, columns: Columns) -> Columns:
        """A copy in the types of what was added before; another shape or kind of number is an error."""
        like = self._like or columns
        if columns.keys() != like.keys() or any(len(column) != len(columns["ends"]) for column in columns.values()):
            raise DataError("actions are given for all states or for none, one for each")
        for name, column in columns.items():
            what, wanted = "observations" if name == "rows" else name, like[name]
            if column.shape[1:] != wanted.shape[1:]:
                raise DataError(f"{what} had shape {wanted.shape[1:]} until now, and these have {column.shape[1:]}")
            if not np.can_cast(column.dtype, wanted.dtype, "same_kind"):
                raise DataError(f"{what} were {wanted.dtype} until now, and these are {column.dtype}; convert them")
        return {name: column.astype(like[name].dtype) for name, column in columns.items()}

    def _close_blocks(self, stream: int) -> None:
        """Hand over the full blocks of a stream; what is left waits for more."""
        columns, size = _joined(self._open[stream]), self._block_states
        full = len(columns["ends"]) // size
        for begin in range(0, full * size, size):
            part = {name: column[begin : begin + size].copy() for name, column in columns.items()}
            number = self._numbers.get(stream, 0)
            self._numbers[stream] = number + 1
            self._looked_up += size
            self._keep(Block(stream, number, self._numbered(part)))
        rest = {name: column[full * size :].copy() for name, column in columns.items()}
        self._waiting[stream] = len(rest["ends"])
        self._open[stream] = [rest] if self._waiting[stream] else []

    def _keep(self, block: Block) -> None:
        most = self.capacity // self._block_states - len(self._open)
        finished, self._finished = self._finished, self._finished + 1
        if len(self._blocks) < max(most, 1):
            self._blocks.append(block)
        elif self.keep == "window":
            self._blocks = [*self._blocks[len(self._blocks) + 1 - max(most, 1) :], block]
        else:
            # Algorithm R: after k blocks each of them is held with the same probability.
            place = int(np.random.default_rng([self.seed, finished]).integers(finished + 1))
            if place < len(self._blocks):
                self._blocks[place] = block

    def _numbered(self, columns: Columns) -> Columns:
        """The columns with numbers of the table in place of observations, as long as there is a table."""
        if self._table is None or columns["rows"].ndim == 1:
            return columns
        return {**columns, "rows": self._table.lookup(columns["rows"])}

    def _consider_table(self) -> None:
        """Drop a table that is of no use, make one where observations repeat after all, and forget what is not held."""
        table = self._table
        if table is not None and table.hardly_repeats(self._looked_up, DECIDE_AFTER):
            self._blocks = [b._replace(columns=self._with_observations(b.columns)) for b in self._blocks]
            self._table, self._try_again = None, 4 * self.seen
        elif table is not None and len(table) > 2 * self.capacity:
            self._tabulate([self._with_observations(block.columns) for block in self._blocks])
        elif table is None and self.seen >= self._try_again and len(self._blocks) * self._block_states >= MIN_DECIDABLE:
            self._try_again = 4 * self.seen
            if tabulated(np.concatenate([block.columns["rows"] for block in self._blocks])) is not None:
                self._tabulate([block.columns for block in self._blocks])

    def _tabulate(self, columns: list[Columns]) -> None:
        self._table, self._looked_up = ObservationTable(), len(self._blocks) * self._block_states
        pairs = zip(self._blocks, columns, strict=True)
        self._blocks = [block._replace(columns=self._numbered(own)) for block, own in pairs]

    def _with_observations(self, columns: Columns) -> Columns:
        assert self._table is not None
        return {**columns, "rows": self._table.observations(columns["rows"])}

    def _trajectories(self, columns: Columns, offsets: NDArray[np.int64]) -> Trajectories:
        rows: NDArray[Any] = columns["rows"]
        ids: NDArray[np.int32] | None = None
        if self._table is not None:
            used, numbers = np.unique(rows, return_inverse=True)
            rows, ids = self._table.observations(used), numbers.astype(np.int32)
            if MIN_DECIDABLE <= len(ids) < MIN_REPEATS * len(used):
                rows, ids = rows[ids], None
        inside = np.ones(offsets[-1], dtype=bool)
        inside[offsets[1:] - 1] = False
        terminated = columns["terminated"][offsets[1:] - 1]
        actions = columns.get("actions")
        layout = {} if self._layout is None else self._layout.as_metadata()
        return Trajectories(
            observations=rows,
            offsets=offsets,
            terminated=terminated,
            truncated=~terminated,
            ids=ids,
            actions=None if actions is None else actions[inside],
            metadata={"world": {"kind": "stream", "name": "stream"}, **layout},
        )


def _joined(pieces: list[Columns]) -> Columns:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _parts(arrays: Mapping[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    """Arrays of a file whose names begin alike, without that beginning."""
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}


def _blocks(arrays: Mapping[str, NDArray[Any]], name: str) -> list[Block]:
    """Blocks from the arrays of a file."""
    if f"{name}.blocks" not in arrays:
        return []
    found, begin = [], 0
    columns = {key: array for key, array in _parts(arrays, name).items() if key != "blocks"}
    for stream, number, size in arrays[f"{name}.blocks"].tolist():
        part = {key: array[begin : begin + size] for key, array in columns.items()}
        if any(len(array) != size for array in part.values()):
            raise ValueError("its columns are too short")
        found.append(Block(stream, number, part))
        begin += size
    return found
