"""`eegnn serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import eegnn.cli.options as opt
from eegnn.cli.app import app

Host = opt.option("ADDRESS", "Where to listen. Others than this machine reach only 0.0.0.0.")
Port = opt.option("N", "The port.", min=0, max=65535)
Timeout = opt.option("SECONDS", "A request that takes longer is ended.", min=0.001)
MaxNodes = opt.option(
    "N",
    "Read at most so many nodes for one pass; who needs more answers with the state it has, and "
    "`truncated` says so.",
    default="no limit",
    min=1,
)


@app.command()
def serve(
    run: Annotated[Path, opt.RunPath],
    input_path: Annotated[
        Path | None,
        opt.option(
            "PATH",
            "Another graph, in any format that `train --input` takes, or mapped from a folder.",
            "--input",
            default="the graph of the run",
        ),
    ] = None,
    host: Annotated[str, Host] = "127.0.0.1",
    port: Annotated[int, Port] = 8000,
    timeout: Annotated[float, Timeout] = 30.0,
    max_nodes: Annotated[int | None, MaxNodes] = None,
    max_layers: Annotated[int | None, opt.MaxLayers] = None,
    exit_threshold: Annotated[float | None, opt.ExitThreshold] = None,
    data_dir: Annotated[Path | None, opt.DataDir] = None,
) -> None:
    """Answer for nodes of a graph over HTTP, each as deep as it needs.

    `POST /predict` takes {"nodes": [3, 14]}, or {"new_nodes": [{"x": [0.5, 1], "neighbors": [3]}]}
    for nodes that are not in the graph. `/docs` describes it; `/health` and `/metrics` are for
    monitors. Needs `pip install 'eegnn[serve]'`.
    """
    try:
        import uvicorn

        from eegnn.serve.app import make_app
    except ImportError as error:
        raise ImportError(f"serve needs {error.name}: pip install 'eegnn[serve]'") from error
    from eegnn.serve.predictor import open_predictor

    knobs = {"max_layers": max_layers, "exit_threshold": exit_threshold, "max_nodes": max_nodes}
    predictor = open_predictor(run, input_path, data_dir, **knobs)
    service = make_app(predictor, timeout)
    config = uvicorn.Config(
        service,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=max(1, round(timeout)),
    )
    server = uvicorn.Server(config)
    Console(stderr=True).print(f"{predictor}\n→ http://{host}:{port}/docs   (Ctrl-C to stop)")
    try:
        server.run()
    except KeyboardInterrupt:  # after all requests have been answered
        raise typer.Exit(0) from None
    if not server.started:
        raise typer.Exit(1)
