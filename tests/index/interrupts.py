"""Signals at any line: tracers that raise, or call a handler, at the n-th event of the code that keeps an index."""

import inspect
import os
import sys
from pathlib import Path

import antisparse

_HOUSE = Path(antisparse.__file__).parent
_PLACES = (str(_HOUSE / "index") + os.sep, str(_HOUSE / "_files.py"))


class Interrupter:
    """Raises KeyboardInterrupt once, at the `turn`-th line that runs, or function that ends, within the block.

    A real signal comes at fewer places: never between a C function's return and the store of its value, say. An
    interrupt where a function ends is one that comes before its caller has what it gave.
    """

    def __init__(self, turn):
        self.turn, self.count, self.raised = turn, 0, False

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def _call(self, frame, event, argument):
        return self._line if frame.f_code.co_filename.startswith(_PLACES) else None

    def _line(self, frame, event, argument):
        # Not where a generator yields, which is a return to the tracer: what is raised there runs no handler of it.
        if event == "line" or (event == "return" and not frame.f_code.co_flags & inspect.CO_GENERATOR):
            self.count += 1
            if self.count == self.turn:
                sys.settrace(None)
                self.raised = True
                raise KeyboardInterrupt
        return self._line


class Handler(Interrupter):
    """Calls a function once, where `Interrupter` would raise: a handler of a signal that returns."""

    def __init__(self, turn, function):
        super().__init__(turn)
        self.function, self.ran = function, False

    def _line(self, frame, event, argument):
        if event == "line":
            self.count += 1
            if self.count == self.turn:
                sys.settrace(None)
                self.ran = True
                self.function()
        return self._line
