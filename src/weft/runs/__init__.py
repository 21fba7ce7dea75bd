"""Runs: trained, gone on with, loaded, evaluated, exported and reported on."""

from weft.runs import registries as registries
