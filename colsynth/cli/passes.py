"""``colsynth passes``: the passes of which pipelines consist."""

from __future__ import annotations

from typing import Any

from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table


def passes(json: JsonOption = False) -> None:
    """List the passes with what they take, give and can be told."""
    from colsynth.pipeline.registry import ALGORITHMS, DEFAULT

    entries = [_entry(DEFAULT.load(name)) for name in DEFAULT.names()]
    if json:
        emit_json({"passes": entries, "algorithms": ALGORITHMS})
        return
    _show(entries, ALGORITHMS)


def _entry(pass_type: Any) -> dict[str, Any]:
    from colsynth.pipeline.interface import summary
    from colsynth.pipeline.options import options_of

    return {
        "name": pass_type.name,
        "takes": pass_type.takes.__name__,
        "gives": pass_type.gives.__name__,
        "summary": summary(pass_type),
        "options": [
            {"name": option.name, "type": option.kind, "default": option.to_text(option.default)}
            for option in options_of(pass_type)
        ],
    }


def _show(entries: list[dict[str, Any]], algorithms: dict[str, str]) -> None:
    table = ruled_table("pass", "takes", "gives", "options", "")
    for entry in entries:
        options = "\n".join(f"{x['name']}={x['default']} ({x['type']})" for x in entry["options"])
        table.add_row(entry["name"], entry["takes"], entry["gives"], options, entry["summary"])
    console = answer_console()
    console.print(table)
    for name, text in algorithms.items():
        console.print(f"-a {name} is --passes '{text}'", soft_wrap=True)
