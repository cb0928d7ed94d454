import inspect
import os
from importlib.metadata import version as installed_version
from pathlib import Path

import tsrnn

os.environ.setdefault("TSRNN_OUTPUT", str(Path(__file__).parent / "_build" / "gallery"))

project = "tsrnn"
author = "The tsrnn developers"
copyright = "2026, The tsrnn developers"
release = installed_version("tsrnn")
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"tsrnn {release}"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_static_path = ["_static"]
html_css_files = ["equations.css"]

# A room's page lists what the room exports, so it follows __all__.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
# Classes of examples/13_a_picture_of_each.py, whose pages show it.
autosummary_context = {
    "examples_of": [name for name in tsrnn.__all__ if inspect.isclass(getattr(tsrnn, name))]
}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
# Names that differ by case alone would share a file on some systems.
autosummary_filename_map = {
    "tsrnn.kernels.sums": "tsrnn.kernels.sums_function",
    "tsrnn.prior.hyperprior": "tsrnn.prior.hyperprior_function",
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"/\d\d_",
    "ignore_pattern": r"(^|/)_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "parallel": 2,
    # The page of a class shows the examples that use it.
    "doc_module": ("tsrnn",),
    "backreferences_dir": "generated/examples_of",
}

# The build needs no network; links into other projects' pages do.
if os.environ.get("TSRNN_DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }


def setup(app):
    # Fields of named tuples are said in the docstring of the class.
    def skip(app, what, name, obj, skip, options):
        return True if type(obj).__name__ == "_tuplegetter" else None

    app.connect("autodoc-skip-member", skip)
