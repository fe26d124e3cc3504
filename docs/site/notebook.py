"""Notebooks as Markdown: JSON is all that is needed to read them."""

import json
from pathlib import Path


def notebook_to_markdown(path: Path) -> str:
    """Its text, its code, and what is kept of its output."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            shown = "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            parts.append(f"```text\n{shown.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
