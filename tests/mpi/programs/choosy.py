"""Runs a command of omb-py in which some bindings cannot send messages of 16 bytes, or floats.

``CHOOSY`` names the bindings, and ``CHOOSY_ABOUT`` says "size" or "type".
"""

import os
from unittest.mock import patch

from omb_py.bindings import Binding, BoundIteration
from omb_py.cli import main
from omb_py.core.calls import Call, Iteration, Message
from omb_py.core.errors import LeftOutError, UnsupportedError

bound = Binding.bound


def choosy(binding: Binding, iteration: Iteration) -> BoundIteration:
    """Refuse an iteration, or bind it."""
    calls = [step for step in iteration.steps if isinstance(step, Call)]
    messages = [one for call in calls for one in call.operands if isinstance(one, Message)]
    if binding.name in os.environ["CHOOSY"].split(","):
        for message in messages:
            if os.environ["CHOOSY_ABOUT"] == "size" and message.memory.nbytes == 16:
                raise LeftOutError("16 is not liked")
            if os.environ["CHOOSY_ABOUT"] == "type" and message.datatype.name == "float32":
                raise UnsupportedError("floats are not liked")
    return bound(binding, iteration)


with patch.object(Binding, "bound", choosy):
    main()
