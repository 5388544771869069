"""`python -m tests.crash`: play scripted sessions, crash them, and say how many machines came back as they must."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time

from tests.crash.campaign import SHARES, Campaign, plans

PLAN_S = 12.0
"""How long one plan is worked on at most."""
SHOWN = 20


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev crash", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first plan's seed; the others follow")
    parser.add_argument("--budget", type=float, default=120.0, metavar="SECONDS", help="stop after this long")
    parser.add_argument("--only", default="", metavar="P1", choices=["", *SHARES], help=f"one of {', '.join(SHARES)}")
    given = parser.parse_args(arguments)
    memory = "/dev/shm"
    root = tempfile.mkdtemp(prefix="pieria-crash-", dir=memory if os.access(memory, os.W_OK) else None)
    campaign = Campaign(f"{root}/m", only=given.only)
    began = time.monotonic()
    try:
        for plan in plans(given.seed):
            left = given.budget - (time.monotonic() - began)
            if left <= 0:
                break
            campaign.prove(plan, seconds=min(left, max(PLAN_S, given.budget / 20)))
    finally:
        campaign.close()
        shutil.rmtree(root)
    return tell(campaign, given.seed)


def tell(campaign: Campaign, seed: int) -> int:
    """Print the table and what failed; return the exit code."""
    failures = [words for tally in campaign.tallies.values() for words in tally.failures]
    for words in failures[:SHOWN]:
        print(f"FAILED  {words}\n")
    print(f"seed {seed}, {campaign.plans} sessions")
    print(f"{'proof':<10} {'states':>8} {'passed':>8} {'seconds':>8}")
    for name, tally in campaign.tallies.items():
        print(f"{name:<10} {tally.tried:>8} {tally.passed:>8} {tally.seconds:>8.1f}")
    missing = campaign.missing()
    if missing:
        print(f"no session writes, and so nothing is cut at: {', '.join(missing)}")
    return 1 if failures or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
