"""Recipes as typed tables of ingredients: components, registries, settings, the plan. No torch."""

from weft.config.component import Component as Component
from weft.config.component import Config as Config
from weft.config.component import setting as setting
from weft.config.recipe import Recipe as Recipe
from weft.config.recipe import like as like
from weft.config.recipe import register_experiment as register_experiment
