"""Tests: real files, real git, fake models and clocks; no mocks, no sleeps."""
