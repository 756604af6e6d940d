"""Pages of the tutorials, made from the notebooks in tutorials/ when the site is built; nothing is run.

A page shows what is stored in its notebook. Pictures become files beside the page.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page, and its pictures, for each notebook; the notebook itself stays, to be downloaded."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page, pictures = markdown_of(Path(notebook.abs_src_path or ""))
        files.append(File.generated(config, notebook.src_uri.replace(".ipynb", ".md"), content=page))
        for name, content in pictures.items():
            files.append(File.generated(config, f"tutorials/{name}", content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to notebooks, which work where the sources are read, become links to their pages."""
    return re.sub(r"\]\(([\w./]*)\.ipynb(#[\w-]+)?\)", r"](\1.md\2)", markdown)


def markdown_of(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown.

    Args:
        path: the notebook.

    Returns:
        The page, and the pictures that it links to by their names.
    """
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    blocks: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
            continue
        blocks.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            blocks.append(_output(output, f"{path.stem}_{len(pictures) + 1}.png", pictures))
    download = f'<a href="{path.name}" download>download it</a>'
    note = f"This page is a notebook: {download}. Its outputs are stored in it, and the tests run it."
    blocks.insert(1, f'<p class="notebook">{note}</p>')
    return "\n\n".join(blocks) + "\n", pictures


def _output(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    """What a cell shows: a picture, HTML or text."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        pictures[name] = base64.b64decode(data["image/png"])
        return f"![output of the cell above]({name}){{.output}}"
    if "text/html" in data:
        # One line, because Markdown ends a block of HTML at an empty one.
        content = " ".join("".join(data["text/html"]).split("\n"))
        return f'<div class="output">{content}</div>'
    return f"```{{.text .output}}\n{''.join(data['text/plain']).rstrip()}\n```"
