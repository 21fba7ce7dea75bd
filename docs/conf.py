"""How the documentation is built: Sphinx with MyST, every warning an error (``make docs``)."""

from importlib.metadata import version as installed_version

project = "textmill"
author = "the authors of textmill"
copyright = f"2026, {author}"
version = release = installed_version("textmill")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"textmill {version}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autoclass_content = "class"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
# Each page has the whole tree of contents in its margin. With every class and function in it the
# build took six minutes, nearly all of them for copies of that tree.
toc_object_entries = False

# What cannot be linked to: other projects' names (the pages are built without a network, so no
# inventory of theirs can be read), type variables, and private names. Links to all else must hold.
nitpick_ignore_regex = [
    ("py:.*", r"(?!textmill\.).*"),
    ("py:.*", r"textmill\..*\.([A-Z](_co)?|_\w+)"),
]


def prepare(_app, what, _name, _obj, _options, lines):
    """Keeps napoleon from reading ``Shape:``, or a colon in an attribute's text, as a type."""
    if what in {"attribute", "data", "property"}:
        lines.insert(0, "\\")  # an escaped line end is nothing; an empty line would be skipped
    lines[:] = [line.replace("*Shape:*", "Shape") for line in lines]


def skip_constants(_app, what, _name, obj, _skip, _options):
    """Leaves constants of modules out of the reference: they are for who reads the code."""
    if what == "module" and not (isinstance(obj, type) or callable(obj)):
        return True
    return None


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip_constants)
    app.connect("autodoc-process-docstring", prepare, priority=400)  # napoleon's is 500
