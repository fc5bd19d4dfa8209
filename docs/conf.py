"""The site: pages by MyST, the reference from docstrings by numpydoc. `make docs` builds it, without a network."""

import pkgutil
import re
from html import escape
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_content
from sphinx.application import Sphinx
from sphinx.project import Project

import antisparse

project = "antisparse"
author = "the antisparse contributors"
copyright = author
version = release = antisparse.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples"]  # the gallery has them
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "code"  # `x` in a docstring
highlight_language = "none"  # of blocks that name none: what is printed

myst_enable_extensions = ["fieldlist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the sections of the docstrings have them, with shapes
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {  # scripts that draw, run at every build if they changed
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "show_signature": False,
}

templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "antisparse"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "back_to_top_button": False,
}
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}

linkcheck_anchors = False
linkcheck_timeout = 20

# docs/index.md is the page on Index, docs/search.md that on searches. Under these names a site has its first page, here
# home.md, and its own search.
PAGE_NAMES = {"home": "index", "index": "the_index", "search": "searching"}
_path2doc = Project.path2doc


def _page_name(self: Project, filename: str) -> str | None:
    name = _path2doc(self, filename)
    return PAGE_NAMES.get(name, name) if name else name


Project.path2doc = _page_name


def public_modules() -> list[ModuleType]:
    """The modules whose names are public: packages with an `__all__`, and documented ones that have neither."""
    names = ["antisparse", "antisparse.errors", "antisparse.evaluation", "antisparse.metrics", "antisparse.client"]
    for found in pkgutil.iter_modules(antisparse.__path__, "antisparse."):
        if found.ispkg and not found.name.rpartition(".")[2].startswith("_"):
            names.append(found.name)
    connect = import_module("antisparse.connect")
    names += [found.name for found in pkgutil.iter_modules(connect.__path__, "antisparse.connect.")]
    return [module for module in map(import_module, sorted(names)) if public_names(module)]


def public_names(module: ModuleType) -> list[str]:
    """What `__all__` lists, or else the functions and classes that the module defines."""
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_") and callable(value)
    ]
    return list(getattr(module, "__all__", own))


def summary(names: list[str], *options: str) -> str:
    """A table of names; with `:toctree:` each gets a page."""
    lines = [".. autosummary::", *(f"   {option}" for option in (*options, ":nosignatures:")), ""]
    return "\n".join(["```{eval-rst}", *lines, *(f"   ~{name}" for name in names), "```", ""]) if names else ""


def write_modules(app: Sphinx) -> None:
    """A page of the reference for every public module, with all of its names, in a folder that git ignores."""
    folder = Path(app.srcdir, "api", "modules")
    folder.mkdir(exist_ok=True)
    pages = {}
    for module in public_modules():
        title = f"`{module.__name__}`"
        head = f"# {title}\n\n{(module.__doc__ or '').strip().splitlines()[0]}\n\n"
        names = sorted(public_names(module), key=str.casefold)
        top = [name for name in names if module is not antisparse and name in antisparse.__all__]
        own = [f"{module.__name__}.{name}" for name in names if name not in top]
        text = head + summary(own, ":toctree: names")
        if top:
            text += "\nImported from `antisparse` itself:\n\n" + summary([f"antisparse.{name}" for name in top])
        pages[folder / f"{module.__name__}.md"] = text
    for page in set(folder.glob("*.md")) - set(pages):
        page.unlink()
    for page, text in pages.items():
        if not page.exists() or page.read_text() != text:  # unchanged pages are not built again
            page.write_text(text)


def not_ours(app: Sphinx, what: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Whether a member is inherited from another package, which documents it on its own site."""
    module = getattr(member, "__module__", None)
    return True if module and not str(module).startswith("antisparse") else None


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """The first paragraph of a page as its description for search engines."""
    paragraphs = doctree.findall(nodes.paragraph) if doctree else []
    texts = (one.astext() for one in paragraphs if isinstance(one.parent, nodes.section | desc_content))
    words = next(filter(None, texts), f"{context.get('title', page)}, in the documentation of antisparse")
    text = escape(shorten(words, 200, placeholder=" …"))
    context["metatags"] = context.get("metatags", "") + f'\n<meta name="description" content="{text}">\n'


def described_pictures(app: Sphinx, docname: str, source: list[str]) -> None:
    """The gallery's first page shows a small picture of each script, which is described by the script's title."""
    if docname == "gallery/index":
        title = r'(:alt:)(\n\n  :doc:.*?thumbnail-title">)(.*?)(</div>)'
        source[0] = re.sub(title, r"\1 A small picture: \3\2\3\4", source[0], flags=re.DOTALL)


def setup(app: Sphinx) -> None:
    """Write the pages of the reference before any page is read."""
    app.connect("config-inited", lambda app, config: write_modules(app))
    app.connect("autodoc-skip-member", not_ours)
    app.connect("html-page-context", describe)
    app.connect("source-read", described_pictures)
