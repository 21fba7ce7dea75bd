"""Recipes as typed tables of ingredients: components, registries, settings, and the plan. No torch here."""

from weft.config.component import Component as Component
from weft.config.component import Config as Config
from weft.config.component import setting as setting
