"""One profile for every run: no chance, no database, no deadline, so that a failure is the same everywhere."""

import os

from hypothesis import HealthCheck, Phase, settings

FIND = (Phase.explicit, Phase.generate)
"""Enough to know that a law is broken; making the example small is for people."""

settings.register_profile(
    "laws",
    derandomize=True,
    database=None,
    deadline=None,
    phases=FIND if os.environ.get("PIERIA_LAWS") == "find" else tuple(Phase),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("laws")
