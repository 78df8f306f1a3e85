"""Pairs of timings: our code and a peer's take turns on the same task in one run.

Each system is a process of its own, which runs a task when asked and answers with one line of JSON: seconds on the
clock and of processor time. Interleaving the rounds exposes both to the same state of the machine; medians are
compared. This file and the scripts beside it use only the standard library and NumPy until a worker loads its system,
so that the peer may live in another environment (`--peer PYTHON`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Seconds before each run: worker threads of the other system look for work for a while before they sleep, on the
# processors that are then measured (a sum took 3.9 ms beside them, 1.0 by itself).
_PAUSE = 0.2

Task = Callable[[], Any]
Rows = dict[str, dict[str, list[dict[str, float]]]]


class Worker:
    """The process of one system, running `script --worker system`."""

    def __init__(self, python: str, script: str, system: str, arguments: Sequence[str] = ()) -> None:
        self.system = system
        command = [python, script, "--worker", system, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.tasks: list[str] = self._answer()["tasks"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # other lines are what the system prints by itself
                found: dict[str, Any] = json.loads(line)
                return found
        raise RuntimeError(f"the worker of {self.system} has ended with code {self._process.wait()}")

    def run(self, task: str) -> dict[str, float]:
        """Run a task once and return its "wall" and "cpu" seconds and what it returned, if that is a number."""
        assert self._process.stdin is not None
        time.sleep(_PAUSE)
        self._process.stdin.write(json.dumps({"task": task}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(f"{self.system}, {task}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def serve(tasks: Mapping[str, Task]) -> None:
    """Answer the requests of a `Worker` until its end; each task must return only when its work is done."""
    print(json.dumps({"tasks": list(tasks)}), flush=True)
    for line in sys.stdin:
        name = json.loads(line)["task"]
        try:
            wall, cpu = time.perf_counter(), time.process_time()
            value = tasks[name]()
            answer: dict[str, Any] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            if isinstance(value, (int, float)):
                answer["value"] = value
            elif isinstance(value, dict):
                answer |= value
        except Exception as error:  # reported to the parent, which goes on with other tasks
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def compare(workers: Sequence[Worker], tasks: Sequence[str], rounds: int, warmup: int = 2) -> Rows:
    """Run each task `warmup` times unmeasured and `rounds` times measured, systems in turn; return all answers."""
    rows: Rows = {}
    for task in tasks:
        able = [w for w in workers if task in w.tasks]
        rows[task] = {w.system: [] for w in able}
        for number in range(warmup + rounds):
            for worker in list(able):
                try:
                    answer = worker.run(task)
                except RuntimeError as error:
                    print(error, file=sys.stderr)
                    able.remove(worker)
                    continue
                if number >= warmup:
                    rows[task][worker.system].append(answer)
        print_rows({task: rows[task]}, header=task == tasks[0])
    return rows


def print_rows(rows: Rows, header: bool = True) -> None:
    """Print medians of clock and processor time per system, and the peer's clock time over ours."""
    for task, systems in rows.items():
        if header:
            columns = "".join(f"{name + ' ms':>16}{'cpu ms':>10}" for name in systems)
            print(f"{'task':<44}{columns}{'ratio':>8}")
            header = False
        cells, walls = "", []
        for answers in systems.values():
            if not answers:
                cells += f"{'-':>16}{'-':>10}"
                continue
            wall, cpu = (1e3 * statistics.median(a[k] for a in answers) for k in ("wall", "cpu"))
            walls.append(wall)
            cells += f"{wall:>16.2f}{cpu:>10.2f}"
        ratio = f"{walls[1] / walls[0]:>8.2f}" if len(walls) == 2 and walls[0] else ""
        print(f"{task:<44}{cells}{ratio}", flush=True)


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every comparison."""
    options = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--peer", metavar="PYTHON", help="interpreter of the peer; without it only ours is timed")
    options.add_argument("--rounds", type=int, default=7, help="measured runs per task (%(default)s)")
    options.add_argument("--only", default="", help="run tasks whose name holds this text")
    options.add_argument("--json", type=Path, help="write all timings to this file")
    options.add_argument("--worker", help=argparse.SUPPRESS)
    return options


def run(options: argparse.Namespace, script: str, ours: str, peer: str, arguments: Sequence[str] = ()) -> Rows:
    """Start the workers, compare all tasks and write the timings; returns them."""
    workers = [Worker(sys.executable, script, ours, arguments)]
    if options.peer:
        workers.append(Worker(options.peer, script, peer, arguments))
    try:
        tasks = [name for name in workers[0].tasks if options.only in name]
        rows = compare(workers, tasks, options.rounds)
    finally:
        for worker in workers:
            worker.close()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return rows


def time_process(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, float]:
    """Return clock and processor seconds of a whole process, its start included."""
    before = os.times()
    begin = time.perf_counter()
    subprocess.run(command, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": time.perf_counter() - begin, "cpu": cpu}


def cold_and_warm(commands: Mapping[str, Sequence[str]], rounds: int, name: str) -> Rows:
    """Time processes with an empty kernel cache and with the cache a first run has left, systems in turn."""
    rows: Rows = {f"{name}, {state} cache": {s: [] for s in commands} for state in ("cold", "warm")}
    for _ in range(rounds):
        for system, command in commands.items():
            with tempfile.TemporaryDirectory() as folder:
                caches = {"LUXGRAD_CACHE_DIR": folder, "DRJIT_CACHE_DIR": folder}
                for state in ("cold", "warm"):
                    rows[f"{name}, {state} cache"][system].append(time_process(command, caches))
    print_rows(rows)
    return rows
