"""The imperative shell around the core: the loop, the performing of effects, recovery and replay."""
