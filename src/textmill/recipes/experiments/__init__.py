"""The experiments the library ships: recipes by name, a module a family of tasks."""
