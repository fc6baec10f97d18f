#!/usr/bin/env python3
"""What does the collector cost on a node of eight cards, each cut into seven, beside nvitop-exporter on the same library?

Both run at once on the stand-in for the driver, in its own time, and are scraped each 15 s. Processor time and memory are the kernel's own figures
(/proc/PID/stat, /proc/PID/status); calls into the driver are counted by the stand-in and weighed with what others measured a call to cost on real
drivers, at its pessimistic end: 5 ms a list of processes, 0.3 ms a sample of the performance monitor, 0.5 ms a ring, 0.1 ms anything else.

    benches/collector.py COLLECTOR LIBRARY [--beside NVITOP_EXPORTER] [--minutes 10] [--scenario FILE] [--step 15] [--dcgm]

Made with: cargo build --release -p cardhour-collector -p cardhour-fake-nvml; python3 -m venv V && V/bin/pip install nvitop-exporter
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

SCENARIO = pathlib.Path(__file__).parent.parent / "tests/fake-nvml/scenarios/eight-h100-mig7.toml"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """Processor time of a process and of those it has waited for. Unit: seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / TICKS_A_SECOND


def memory_kib(pid):
    """Resident: all, anonymous, and of files. Unit: KiB."""
    lines = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return [int(lines[key].split()[0]) for key in ("VmRSS", "RssAnon", "RssFile")]


def cost_ms(call):
    if "RunningProcesses" in call:
        return 5.0
    if call in ("nvmlGpmSampleGet", "nvmlGpmMigSampleGet"):
        return 0.3
    if call in ("nvmlDeviceGetSamples", "nvmlDeviceGetProcessUtilization"):
        return 0.5
    return 0.1


def with_pids_of_nobody(scenario):
    """The scenario with its processes at pids that no kernel gives: else one that comes and goes on this machine may be taken for one of them."""
    return re.sub(r"^pid = (\d+)", lambda found: f"pid = {5_000_000 + int(found[1])}", scenario.read_text(), flags=re.M)


def counts(path):
    try:
        return {name: int(count) for name, count in (line.split() for line in path.read_text().splitlines())}
    except FileNotFoundError:
        return {}


class Meter:
    """A process that is measured from a moment on."""

    def __init__(self, name, pid, page, counts_at):
        self.name, self.pid, self.page, self.counts_at = name, pid, page, counts_at
        self.memory, self.page_bytes, self.page_s = [], 0, []

    def begin(self):
        self.began, self.cpu, self.counted = time.monotonic(), cpu_s(self.pid), counts(self.counts_at)

    def look(self):
        began = time.monotonic()
        with urllib.request.urlopen(self.page, timeout=30) as answer:
            self.page_bytes = len(answer.read())
        self.page_s.append(time.monotonic() - began)
        self.memory.append(memory_kib(self.pid))

    def end(self):
        elapsed = time.monotonic() - self.began
        calls = {name: count - self.counted.get(name, 0) for name, count in counts(self.counts_at).items()}
        most = max(self.memory)
        return {
            "processor, % of a core": 100 * (cpu_s(self.pid) - self.cpu) / elapsed,
            "resident at most, MiB": most[0] / 1024,
            "  anonymous, MiB": most[1] / 1024,
            "  of files, MiB": most[2] / 1024,
            "calls into the driver a second": sum(calls.values()) / elapsed,
            "  at what calls cost, % of a core": sum(cost_ms(call) * n for call, n in calls.items()) / (10 * elapsed),
            "lists of processes a second": sum(n for call, n in calls.items() if "RunningProcesses" in call) / elapsed,
            "PcieThroughput": calls.get("nvmlDeviceGetPcieThroughput", 0),
            "page, KiB": self.page_bytes / 1024,
            "page takes, ms": 1000 * sorted(self.page_s)[len(self.page_s) // 2],
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collector", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--beside", type=pathlib.Path, help="nvitop-exporter")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--scenario", type=pathlib.Path, default=SCENARIO)
    parser.add_argument("--step", type=int, default=15)
    parser.add_argument("--dcgm", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, pathlib.Path(folder))


def measure(options, folder):
    (folder / "ledger/incoming").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/libnvidia-ml.so.1").symlink_to(options.library.resolve())
    scenario = folder / "scenario.toml"
    scenario.write_text(with_pids_of_nobody(options.scenario))
    config = folder / "collector.toml"
    config.write_text(
        f'cluster = "lab"\nnode = "n1"\nspool = "{folder}/spool"\nstep_s = {options.step}\nmetrics = "127.0.0.1:19401"\n'
        f'dcgm_names = {str(options.dcgm).lower()}\n[deliver]\nfolder = "{folder}/ledger"\n'
    )
    environment = {**os.environ, "FAKE_NVML_SCENARIO": str(scenario), "LD_LIBRARY_PATH": str(folder / "lib")}
    running, meters = [], []
    try:
        def start(name, command, page):
            counted = folder / f"{name}.counts"
            log = open(folder / f"{name}.log", "w")
            process = subprocess.Popen(command, env={**environment, "FAKE_NVML_COUNTS": str(counted)}, stdout=log, stderr=log)
            running.append(process)
            meters.append(Meter(name, process.pid, page, counted))

        start("collector", [options.collector, "--config", config], "http://127.0.0.1:19401/metrics")
        if options.beside:
            start("nvitop-exporter", [options.beside, "--port", "18000"], "http://127.0.0.1:18000/metrics")
        # Past its start: lists, health and pages have all been made.
        time.sleep(3 * options.step)
        for meter in meters:
            meter.begin()
        until = time.monotonic() + 60 * options.minutes
        while time.monotonic() < until:
            for meter in meters:
                meter.look()
            time.sleep(min(15, max(0, until - time.monotonic())))
        told = [(meter.name, meter.end()) for meter in meters]
    except Exception:
        for log in folder.glob("*.log"):
            print(log.name, log.read_text(), file=sys.stderr)
        raise
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    ours = told[0][1]
    head = "".join(f"{name:>18}" for name, _ in told) + (f"{'ratio':>10}" if len(told) > 1 else "")
    print(f"{options.minutes:g} minutes, step {options.step} s\n{'':36}{head}")
    for key, mine in ours.items():
        theirs = told[1][1][key] if len(told) > 1 else None
        line = f"{key:36}{mine:18.3f}"
        if theirs is not None:
            line += f"{theirs:18.3f}" + (f"{theirs / mine:10.1f}" if mine else f"{'':10}")
        print(line)


if __name__ == "__main__":
    main()
