"""How Sphinx builds the documentation."""

import eegnn

project = "EEGNN"
copyright = "The EEGNN authors"
version = release = eegnn.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas are drawn without the network
    "myst_nb",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2  # the links to headings that GitHub has
nb_execution_mode = "off"  # the notebooks are kept with their outputs; a test runs them
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "furo"
html_title = "EEGNN"
autodoc_typehints = "none"  # the signatures carry them
autodoc_member_order = "bysource"
napoleon_custom_sections = [("Shapes", "params_style")]
