"""Recipes as typed tables of ingredients: components, registries, settings, the plan. No torch."""

from weft.config.component import Component as Component
from weft.config.component import Config as Config
from weft.config.component import setting as setting
