"""Planted mistakes: a law that stays green under one of them is no law."""
