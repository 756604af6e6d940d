"""No telemetry, no network at run time: the real commands run where attempts to leave the machine fail and are counted.

Two guards at once. In Python an audit hook, in every process through ``sitecustomize``, writes down each address and
each name looked up. For native code a network namespace without an interface: the kernel counts what found no route.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]

# Python reads this at the start of every process, workers of a study included.
GUARD = """
import os, sys

SENDS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
ASKS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}

def stays_here(event, where):
    if event in SENDS and not isinstance(where, tuple):
        return True  # a socket in the file system, or one that is connected already
    host = where[0] if isinstance(where, tuple) else where
    host = host.decode() if isinstance(host, bytes) else host
    return host in (None, "", "localhost", "::1") or host.startswith("127.")

def refuse(event, arguments):
    if event not in SENDS | ASKS:
        return
    where = arguments[1 if event in SENDS else 0]
    if not stays_here(event, where):
        with open(os.environ["LAPWING_TEST_ATTEMPTS"], "a") as stream:
            stream.write(f"{event} {where!r}\\n")
        raise OSError(f"no network in this test: {event}")

sys.addaudithook(refuse)
"""

# One process for all of them: importing JAX takes longer than most.
RUN = (
    "import sys, shlex; from lapwing.cli.main import main; sys.exit(max(main(shlex.split(line)) for line in sys.stdin))"
)
COMMANDS = """\
worlds --out worlds.png
collect GridMaze-7 --steps 30000 --out data
audit data
solve GridMaze-7 --dim 3 --out exact
learn data --dim 3 --steps 40 --out learned
score learned --truth GridMaze-7 --data data
report learned --out page.html
plot learned --what spectrum --out spectrum.pdf
doctor
reproduce theory --seeds 1
"""

# Sets the flag "up" of the interface "lo", as `ip link set lo up` does where that program is installed.
LOOPBACK_UP = "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sH14x', b'lo', 1))"
NAMESPACES = (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"])


class Finished(NamedTuple):
    """What a guarded process did: exit code, words, the attempts that Python saw and those that the kernel counted."""

    code: int
    words: str
    attempts: list[str]
    unrouted: int | None


def namespace() -> list[str] | None:
    """The words that start a program without a network, or None where this machine allows none."""
    for words in NAMESPACES:
        try:
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                return words
        except OSError:
            return None
    return None


def unrouted(counters: str) -> int:
    """Packets without a route in the text of ``/proc/net/snmp`` and ``/proc/net/snmp6``."""
    names, values = (line.split() for line in counters.splitlines() if line.startswith("Ip: "))
    return int(values[names.index("OutNoRoutes")]) + int(re.findall(r"^Ip6OutNoRoutes\s+(\d+)", counters, re.M)[0])


def run_guarded(program: str, folder: Path, words: str = "", *, loopback: bool = False) -> Finished:
    """Run Python code in ``folder`` under both guards, with a home of its own, as on the first day on a new machine."""
    for name in ("guard", "home"):
        (folder / name).mkdir()
    (folder / "guard" / "sitecustomize.py").write_text(GUARD)
    attempts, counters = folder / "attempts", folder / "counters"
    attempts.touch()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder / "guard"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "LAPWING_TEST_ATTEMPTS": str(attempts),
        "HOME": str(folder / "home"),
        "JAX_PLATFORMS": "cpu",
    }
    for name in ("WANDB_MODE", "WANDB_ERROR_REPORTING"):
        environment.pop(name, None)
    command = [sys.executable, "-c", program]
    prefix = namespace()
    if prefix is not None:
        before = f'"{sys.executable}" -c "{LOOPBACK_UP}"' if loopback else "true"
        after = 'code=$?; cat /proc/net/snmp /proc/net/snmp6 > "$file"; exit $code'
        command = [*prefix, "sh", "-c", f'{before} && file=$1; shift; "$@"; {after}', "sh", str(counters), *command]
    done = subprocess.run(
        command, input=words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    counted = unrouted(counters.read_text()) if prefix is not None else None
    return Finished(done.returncode, done.stdout + done.stderr, attempts.read_text().splitlines(), counted)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_guarded(RUN, tmp_path_factory.mktemp("commands"), COMMANDS)


def test_every_command_works_without_a_network(commands: Finished) -> None:
    assert commands.code == 0, commands.words[-3000:]


def test_no_command_asks_for_a_name_or_an_address_elsewhere(commands: Finished) -> None:
    assert commands.attempts == []


def test_native_code_sends_nothing_either(commands: Finished) -> None:
    if commands.unrouted is None:
        pytest.skip("this machine allows no network namespace")
    assert commands.unrouted == 0


def test_an_attempt_in_python_is_refused_and_written_down(tmp_path: Path) -> None:
    done = run_guarded("import socket; socket.create_connection(('somewhere.invalid', 80))", tmp_path)
    assert done.code == 1
    assert done.attempts == ["socket.getaddrinfo 'somewhere.invalid'"]


def test_an_attempt_past_python_is_counted(tmp_path: Path) -> None:
    if namespace() is None:
        pytest.skip("this machine allows no network namespace")
    # Loopback is down in the namespace, so the hook lets this pass and the kernel has no route for it.
    done = run_guarded("import socket; socket.socket().connect(('127.0.0.1', 80))", tmp_path)
    assert (done.code, done.attempts) == (1, [])
    assert done.unrouted == 1


def test_wandb_offline_asks_for_nothing(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    learn = "learn GridMaze-7 --exact --dim 3 --steps 40 --log-every 20 --no-report --out run --log wandb"
    done = run_guarded(RUN, tmp_path, learn, loopback=True)  # it talks to a process of its own there
    assert done.code == 0, done.words[-3000:]
    assert (done.attempts, done.unrouted or 0) == ([], 0)
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*"))


@pytest.mark.parametrize("module", sorted((ROOT / "src").rglob("*.py")), ids=lambda path: path.stem)
def test_no_module_holds_an_address_or_a_client(module: Path) -> None:
    source = module.read_text(encoding="utf-8")
    assert not re.search(r"https?://|\bftp://", source)
    assert not re.search(r"^\s*(import|from) (urllib|http|requests|httpx|socket|ssl|aiohttp)\b", source, re.M)


def test_a_page_loads_nothing_from_elsewhere() -> None:
    templates = [path for path in (ROOT / "src").rglob("templates/*") if path.is_file()]
    assert templates
    for path in templates:
        assert not re.search(r"""(src|href)\s*=\s*["'](https?:)?//""", path.read_text(encoding="utf-8")), path.name
