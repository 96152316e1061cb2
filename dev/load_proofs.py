#!/usr/bin/env python3
"""Long proofs with `weir load` against a server of its own, each with a verdict and an exit code.

    dev/load_proofs.py many-devices [COUNT]   COUNT TLS devices at once, a kill -9 of the server, all back in time
    dev/load_proofs.py soak [MINUTES]         half of what the server bears, with churn; memory must stay flat

What was seen goes to artifacts/, with the report of the load test as a page.
"""

import atexit
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = os.environ.get("WEIR", str(ROOT / ".build/release/weir"))
ARTIFACTS = ROOT / "artifacts"
# A loop that is busy for longer keeps its other connections waiting.
STALL_MAX_MS = 100
BACK_WITHIN_S = 30
# Open files and timers that come and go with the store and the administration's own connections.
HELD_SPARE = 5
# What a remembered id takes, with the room that its table keeps free.
ID_BYTES = 64


CHILDREN = []


def child(words, **options):
    """Starts a program that ends with this one."""
    process = subprocess.Popen(words, **options)
    CHILDREN.append(process)
    return process


@atexit.register
def end_children():
    for process in CHILDREN:
        if process.poll() is None:
            process.kill()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`weir serve` on ports that stay the same after a restart."""

    def __init__(self, directory, flags=()):
        self.data = str(directory)
        self.ports = {"xmpp": free_port(), "https": free_port(), "admin": free_port()}
        self.flags = list(flags)
        self.samples = []
        self.process = None
        self.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def start(self):
        words = [WEIR, "serve", "--data", self.data, "--log-level", "error"]
        for name, port in self.ports.items():
            words += [f"--{name}-port", str(port)]
        self.process = child(words + self.flags, stdout=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        if not line.startswith("weir ready"):
            sys.exit(f"the server did not start: {line}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def resident_kib(self):
        try:
            text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"VmRSS:\s+(\d+)", text)
        return int(found.group(1)) if found else 0

    def cpu_seconds(self):
        try:
            text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return 0
        fields = text[text.rindex(")") + 2 :].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _metrics(self):
        url = f"http://127.0.0.1:{self.ports['admin']}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()

    def _watch(self):
        """Every second: memory, and the longest time in which a loop was busy."""
        while True:
            sample = {"at": time.monotonic(), "resident_kib": self.resident_kib(), "cpu": self.cpu_seconds(),
                      "stall_ms": 0.0}
            try:
                rounds = re.findall(r"^weir_loop_longest_round_seconds\{.*?\} (\S+)$", self._metrics(), re.M)
                sample["stall_ms"] = max(map(float, rounds), default=0.0) * 1000
            except OSError:
                pass
            self.samples.append(sample)
            time.sleep(1)

    def held(self):
        """Open files, and timers of all loops."""
        text = self._metrics()
        files = re.search(r"^weir_process_open_files (\S+)$", text, re.M)
        timers = re.findall(r"^weir_loop_timers\{.*?\} (\S+)$", text, re.M)
        return int(float(files.group(1))), int(sum(map(float, timers)))

    def held_again(self, before):
        """What is held once all clients have gone: waits until that is no more than `before`, half a minute at most."""
        until = time.monotonic() + 30
        while True:
            now = self.held()
            if all(a <= b for a, b in zip(now, before)) or time.monotonic() > until:
                return now
            time.sleep(1)

    def stall_ms(self, since=0.0):
        return max((s["stall_ms"] for s in self.samples if s["at"] >= since), default=0.0)


def load(server, scenario, name, seconds, each=lambda line: None):
    """Runs `weir load` to its end.

    Returns its summary; `each` sees every second as it comes.
    """
    ARTIFACTS.mkdir(exist_ok=True)
    path = pathlib.Path(server.data) / f"{name}.json5"
    path.write_text(json.dumps(scenario))
    words = [WEIR, "load", str(path), "--json", "--server", f"localhost:{server.ports['xmpp']}", "--https",
             f"localhost:{server.ports['https']}", "--credentials", f"{server.data}/credentials", "--keep-devices",
             f"{server.data}/{name}.devices", "--report", str(ARTIFACTS / f"{name}.html")]
    process = child(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors = []
    threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True).start()
    watchdog = threading.Timer(seconds, process.kill)
    watchdog.start()
    summary = None
    for line in process.stdout:
        value = json.loads(line)
        if value.get("kind") == "summary":
            summary = value
        else:
            each(value)
    process.wait()
    watchdog.cancel()
    if summary is None:
        sys.exit(f"weir load gave no summary (exit code {process.returncode}): {''.join(errors)[-500:]}")
    return summary


def verdict(faults):
    for fault in faults:
        print("  " + fault)
    print("NOT as promised" if faults else "as promised")
    return 1 if faults else 0


def many_devices(count):
    with tempfile.TemporaryDirectory() as directory:
        server = Server(directory)
        cores = os.cpu_count() or 1
        seen = {"before": 0, "cpu": 0.0, "full": None, "full_kib": 0, "full_cpu": 0.0, "killed": None, "back": None}

        def each(second):
            now = time.monotonic()
            if second["phase"] == "connecting" and not seen["before"]:
                # The first line comes a second after the first connection was begun.
                quiet = [s for s in server.samples if s["at"] <= now - 1] or server.samples
                seen.update(before=quiet[-1]["resident_kib"], cpu=quiet[-1]["cpu"])
            if second["connected"] == count and seen["full"] is None:
                seen.update(full=now, full_kib=server.resident_kib(), full_cpu=server.cpu_seconds())
                print(f"all {count} connected after {second['second']} s")
            elif seen["full"] and seen["killed"] is None and now - seen["full"] > 5:
                server.kill()
                seen["killed"] = time.monotonic()
                server.start()
                print(f"killed and started again within {time.monotonic() - seen['killed']:.1f} s")
            elif seen["killed"] and seen["back"] is None:
                print(f"  {now - seen['killed']:.0f} s after the kill: {second['connected']} connected")
                if second["connected"] == count:
                    seen["back"] = now - seen["killed"]

        scenario = {
            "name": f"{count} devices and a kill", "duration": "50s", "settle": "60s",
            "devices": {"count": count, "connect_rate": 2000, "connecting_max": 500}, "senders": {"count": 4},
            "arrivals": {"constant": 500},
        }
        begin = time.monotonic()
        summary = load(server, scenario, "many-devices", 900, each)
        stall = server.stall_ms(begin)
        server.stop()
    faults = list(summary["faults"])
    if seen["full"] is None:
        faults.append("not all devices were connected at once")
    else:
        kib = (seen["full_kib"] - seen["before"]) / count
        cpu = (seen["full_cpu"] - seen["cpu"]) * 1000 / count
        print(f"memory of a connected device: {kib:.1f} KiB; a login: about {cpu:.2f} ms of processor time")
    if seen["back"] is None or seen["back"] > BACK_WITHIN_S:
        faults.append(f"after the kill not all were back within {BACK_WITHIN_S} s ({seen['back']})")
    else:
        print(f"all back {seen['back']:.1f} s after the kill; {cores} cores for server and devices together")
    print(f"longest time in which a loop was busy: {stall:.0f} ms")
    if stall > STALL_MAX_MS:
        faults.append(f"a loop was busy for {stall:.0f} ms, at most {STALL_MAX_MS} are allowed")
    ledger = summary["ledger"]
    print(f"ledger: {ledger['written']} written, {ledger['acked']} acked, {ledger['delivered']} delivered, "
          f"{ledger['lost']} lost, {ledger['doubled']} doubled, {ledger['hidden_repeats']} repeats hidden")
    return verdict(faults)


def soak(minutes):
    seconds = max(30, int(minutes * 60))
    with tempfile.TemporaryDirectory() as directory:
        server = Server(directory)
        devices = {"count": 500, "connect_rate": 500}
        full = load(server, {"name": "full speed", "duration": "5s", "devices": devices,
                             "senders": {"count": 10}, "arrivals": "closed"}, "soak-full", 300)
        half = int(full["acked_per_second"] / 2)
        # Timers of what the clients have left behind are still due for some seconds.
        time.sleep(min(10, minutes * 10))
        held = server.held()
        print(f"it bears {full['acked_per_second']:.0f} messages/s; {seconds} s at {half}/s with churn")
        begin = time.monotonic()
        scenario = {
            "name": "soak", "duration": seconds, "settle": "60s",
            "devices": {**devices, "churn": 20, "away": "2s", "slow_readers": {"count": 5}},
            "senders": {"count": 10}, "arrivals": {"poisson": half}, "upstream": 20,
        }

        def each(second):
            if second["second"] % 30 == 0:
                print(f"  {second['second']} s: {server.resident_kib() / 1024:.1f} MiB, {second['connected']} connected")

        summary = load(server, scenario, "soak", seconds + 300, each)
        end = begin + seconds
        samples = [s for s in server.samples if begin <= s["at"] <= end and s["resident_kib"]]
        stall = server.stall_ms(begin)
        held_after = server.held_again(tuple(count + HELD_SPARE for count in held))
        server.stop()

    def mean(first, last):
        part = [s["resident_kib"] for s in samples if begin + seconds * first <= s["at"] < begin + seconds * last]
        return sum(part) / max(1, len(part)) / 1024

    # The first third is for caches to fill.
    early, late = mean(1 / 3, 2 / 3), mean(2 / 3, 1)
    print(f"resident memory: {early:.1f} MiB in the second third, {late:.1f} MiB in the last one; "
          f"longest time in which a loop was busy {stall:.0f} ms")
    print(f"{summary['ledger']['acked']} acked, {summary['ledger']['lost']} lost, "
          f"{summary['ledger']['doubled']} doubled; ack p99 {summary['ack_ms']['p99']} ms")
    print(f"with no client connected: {held[0]} open files before and {held_after[0]} after, "
          f"{held[1]} timers before and {held_after[1]} after")
    faults = list(summary["faults"])
    if any(after > before + HELD_SPARE for before, after in zip(held, held_after)):
        faults.append("open files or timers are left behind")
    # Ids of the last ten minutes are remembered, a million at most: until then memory grows with them.
    ids = min(half * seconds / 3, max(0, 1_000_000 - half * seconds / 3)) * ID_BYTES / 2**20
    print(f"of the difference, up to {ids:.1f} MiB are the memory of ids that were seen")
    # Caches with bounds fill for the first minutes, see docs/performance.md: pages of the store alone take up to 80 MiB. A
    # short run only shows that nothing runs away.
    spare = 2 if seconds >= 1200 else 32
    if late > early * 1.05 + spare + ids:
        faults.append("memory grows")
    return verdict(faults)


def main():
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    words = sys.argv[1:]
    if words[:1] == ["many-devices"]:
        return many_devices(int(words[1]) if len(words) > 1 else 18_000)
    if words[:1] == ["soak"]:
        return soak(float(words[1]) if len(words) > 1 else 60)
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
