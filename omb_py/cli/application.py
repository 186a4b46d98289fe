"""One click command per application, made from the fields of its problem."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import click

from omb_py.apps import Application
from omb_py.apps.runtime import math_threads
from omb_py.cli.benchmark import CONTEXT, graph_writers
from omb_py.cli.help import GroupedCommand
from omb_py.measure.launch import check_binding_options, labelled, start_job
from omb_py.options.application import application_parameters, make_request


def application_command(application: Application[Any]) -> click.Command:
    """Make the command that measures an application, with the options that it declares."""

    def callback(**values: Any) -> None:
        request = make_request(application, values)
        request = replace(request, options=labelled(request.options))
        math_threads.request_threads(request.settings.threads)
        with start_job(application.name, request.options) as found:
            from omb_py.apps.runtime.measurement import ApplicationSetting, measure

            with found.job.agreement():
                check_binding_options(request.options, (request.options.binding,))
            writers = partial(graph_writers, request.options)
            measure(
                ApplicationSetting(
                    request, found.buffer, found.job, found.watchdog, found.device_first, writers
                )
            )

    text = f"{application.summary}\n\n{application.details}".strip()
    parameters = application_parameters(application)
    arguments = [one.human_readable_name for one in parameters if isinstance(one, click.Argument)]
    example = " ".join(["mpiexec -n N omb-py", application.name, *arguments])
    return GroupedCommand(
        application.name,
        callback=callback,
        params=parameters,
        short_help=application.summary,
        help=f"{text}\n\n{example}",
        context_settings=CONTEXT,
    )
