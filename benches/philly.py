#!/usr/bin/env python3
"""How long does a month's bill take, and an import, on a real trace?

    python benches/philly.py target/release/cardhour [--runs N] [--copies N] [--check]

Builds nothing: takes the path of a release binary. Needs the packages of tests/requirements.txt and the public trace at ../shared/data (or
CARDHOUR_SHARED). Prints medians of whole commands, from start to exit, and their ratio to DuckDB doing the same aggregation from the same
Parquet files: those of the tables' current snapshot, by deltalake's file_uris, since a glob would also read what later commits replaced.
Quote the ratios: seconds are this machine's. With --check, exit code 1 when the bill takes 0.3 s or more or an import is below 200,000 rows/s.
"""

import argparse
import datetime
import decimal
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import deltalake
import duckdb

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS_MS_PER_CARD_HOUR = 18_018_000 * 3_600_000
PRICES = """\
currency = "USD"
zone = "UTC"
[[window]]
name = "off-peak"
days = "mon-sun"
from = "22:00"
to = "08:00"
[[price]]
from = "2017-01-01"
model = "*"
per_card_hour = "2.50"
coefficient = "1"
off-peak = "0.6"
"""


def seconds(run, times: int) -> float:
    """The median time of `run`, after one that warms up."""
    run()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


class Cardhour:
    """The binary on one ledger."""

    def __init__(self, binary: str, ledger: pathlib.Path):
        self.binary = binary
        self.env = {**os.environ, "CARDHOUR_LEDGER": str(ledger), "XDG_CONFIG_HOME": str(ledger.parent / "config")}

    def __call__(self, *words: str) -> str:
        done = subprocess.run([self.binary, *words], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode not in (0, 4):
            sys.exit(f"{' '.join(words)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def copies_of(trace: pathlib.Path, copies: int, into: pathlib.Path) -> int:
    """Writes the trace `copies` times, each copy 30 days later, so that no row is another's. Comes back with the number of rows."""
    lines = trace.read_text().splitlines()
    rows = 0
    with into.open("w") as out:
        print(lines[0], file=out)
        for copy in range(copies):
            shift = datetime.timedelta(days=30 * copy)
            for line in filter(None, lines[1:]):
                at, rest = line.split(",", 1)
                print(f"{datetime.datetime.fromisoformat(at) + shift},{rest}", file=out)
                rows += 1
    return rows


def table(ledger: pathlib.Path, name: str) -> deltalake.DeltaTable:
    """A table of the ledger, wherever in it that lies."""
    log = next(log for log in sorted(ledger.rglob("_delta_log")) if log.parent.name == name)
    return deltalake.DeltaTable(str(log.parent))


def duckdb_query(ledger: pathlib.Path) -> str:
    """The bill as SQL over the current snapshot's files: by project, peak and off-peak priced apart."""
    files = {name: table(ledger, name).file_uris() for name in ("usage", "jobs")}
    return f"""
        select project, count(distinct attempt_key) as attempts, sum(card_time) as card_time, sum(billed_time) as billed_time,
            sum(billed_time * case when hour >= 22 or hour < 8 then 15 else 25 end) as tenth_cost
        from (
            select u.attempt_key, u.card_time, u.billed_time, j.project,
                (epoch_ms(u.bucket_start) // 3600000) % 24 as hour
            from read_parquet({files["usage"]}, hive_partitioning = true) u
            join (select attempt_key, any_value(project) as project
                  from read_parquet({files["jobs"]}, hive_partitioning = true) group by all) j using (attempt_key)
            where u.state = 'held')
        group by project order by project"""


def card_hours(csv: str) -> decimal.Decimal:
    header, *rows = (line.split(",") for line in csv.splitlines())
    return sum((decimal.Decimal(row[header.index("card_hours")]) for row in rows), decimal.Decimal(0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="a release build of cardhour")
    parser.add_argument("--runs", type=int, default=11, help="runs of each (default 11)")
    parser.add_argument("--copies", type=int, default=8, help="copies of the trace in the long import (default 8: 657,976 rows)")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a figure misses what is promised")
    arguments = parser.parse_args()
    trace = pathlib.Path(os.environ.get("CARDHOUR_SHARED", ROOT.parent / "shared/data")) / "philly/philly.csv"
    if not trace.exists():
        sys.exit(f"{trace} is not there: set CARDHOUR_SHARED to the folder with the public traces")
    maps = str(ROOT / "deploy/maps/philly.toml")

    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        ledgers = []

        def new_ledger() -> Cardhour:
            # Never where one was just deleted: ext4 passes over inodes that are freshly free, one by one.
            ledgers.append(work / f"ledger-{len(ledgers)}")
            ledgers[-1].mkdir(mode=0o700)
            (ledgers[-1] / "prices.toml").write_text(PRICES)
            return Cardhour(arguments.binary, ledgers[-1])

        def imported(file: pathlib.Path):
            return lambda: new_ledger()("import", "jobs", str(file), "--map", maps)

        long = work / "long.csv"
        long_rows = copies_of(trace, arguments.copies, long)
        long_s = seconds(imported(long), max(3, arguments.runs // 4))
        rows = long_rows // arguments.copies
        import_s = seconds(imported(trace), max(3, arguments.runs // 2))

        ledger = ledgers[-1]
        cardhour = Cardhour(arguments.binary, ledger)
        bill = ("report", "bill", "--by", "project", "--format", "csv")
        bill_s = seconds(lambda: cardhour(*bill), arguments.runs)
        help_s = seconds(lambda: cardhour("--version"), arguments.runs)

        query = duckdb_query(ledger)
        con = duckdb.connect(config={"threads": 2})
        query_s = seconds(lambda: con.execute(query).fetchall(), arguments.runs)
        script = work / "bill.py"
        script.write_text(f"import duckdb\nprint(duckdb.connect(config={{'threads': 2}}).execute({query!r}).fetchall())\n")
        command = [sys.executable, str(script)]
        python_s = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), arguments.runs)

        ours = card_hours(cardhour(*bill))
        theirs = decimal.Decimal(int(sum(row[2] for row in con.execute(query).fetchall()))) / PARTS_MS_PER_CARD_HOUR
        if abs(ours - theirs) > decimal.Decimal("0.0001"):
            sys.exit(f"the bill has {ours} card-hours, DuckDB {theirs}: not the same aggregation")
        buckets = con.execute(f"select count(*) from read_parquet({table(ledger, 'usage').file_uris()})").fetchone()[0]

    print(f"{rows:,} jobs, {buckets:,} rows of usage, {ours:,.4f} card-hours; DuckDB {duckdb.__version__}, medians of whole commands")
    print(f"bill by project           {bill_s:8.3f} s   (an empty command {help_s:.3f} s)")
    print(f"  DuckDB, query alone     {query_s:8.3f} s   ratio {bill_s / query_s:.2f}")
    print(f"  DuckDB in Python        {python_s:8.3f} s   ratio {bill_s / python_s:.2f}")
    print(f"import of {rows:>9,} rows {import_s:8.3f} s   {rows / import_s:>11,.0f} rows/s")
    print(f"import of {long_rows:>9,} rows {long_s:8.3f} s   {long_rows / long_s:>11,.0f} rows/s")
    missed = [
        text
        for missed, text in [
            (bill_s >= 0.3, f"the bill takes {bill_s:.3f} s, promised is under 0.3 s"),
            (long_rows / long_s < 200_000, f"import runs at {long_rows / long_s:,.0f} rows/s, promised are 200,000"),
        ]
        if missed
    ]
    for text in missed:
        print(text, file=sys.stderr)
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
