"""Runs: trained, gone on with, loaded, evaluated, exported and reported on."""
