"""Recipes as typed tables of ingredients: components, registries, settings, the plan. No torch."""

from textmill.config.component import Component as Component
from textmill.config.component import Config as Config
from textmill.config.component import setting as setting
from textmill.config.recipe import Recipe as Recipe
from textmill.config.recipe import like as like
from textmill.config.recipe import register_experiment as register_experiment
