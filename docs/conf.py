"""How the documentation is built: Sphinx with MyST, every warning an error (``make docs``)."""

from importlib.metadata import version as installed_version

project = "weft"
author = "the authors of weft"
copyright = f"2026, {author}"
version = release = installed_version("weft")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"weft {version}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autoclass_content = "class"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True

# What cannot be linked to: other projects' names (the pages are built without a network, so there is
# no inventory of theirs to read), type variables, and weft's names that have no page of their own.
nitpick_ignore_regex = [
    ("py:.*", r"(?!weft\.).*"),
    ("py:.*", r"weft\..*"),
]
