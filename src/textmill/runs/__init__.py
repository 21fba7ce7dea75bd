"""Runs: trained, gone on with, loaded, evaluated, exported and reported on."""

from textmill.runs import registries as registries
