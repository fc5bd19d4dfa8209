"""Mutated files through one reader, in a process of its own.

    PYTHONPATH=tests python tests/fuzz/worker.py READER SEED FIRST COUNT FOLDER

Prints the peak of memory; an error that is none of the library's ends it, and the file `at` names the mutation that was
being read, so that a crash of the process is named too. FIRST and COUNT of one mutation read it again.
"""

import resource
import signal
import sys
import traceback
from pathlib import Path

import numpy as np
from mutation import bent_codec, mutated
from readers import CORPUS, READERS

from antisparse.errors import AntisparseError

MEMORY = 1 << 30  # beside what the process has when it begins
SECONDS = 20  # for one file


def mutation(reader: str, seed: int, number: int) -> tuple[str, bytes]:
    """The name and the bytes of one mutated file; the first are as they were."""
    random = np.random.default_rng([seed, number])
    names = READERS[reader][1]
    name = names[number % len(names)]
    data = (CORPUS / name).read_bytes()
    if number < len(names):
        return name, data
    if reader == "codec" and random.random() < 0.5:
        return name, bent_codec(data, random)  # with sound checksums
    return name, mutated(data, random)


def guard(folder: Path) -> None:
    """From now on no file outside of `folder` is opened for writing, and memory is bounded."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else None
    if pages is not None:
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes):
            return
        place = Path(str(arguments[0]) if isinstance(arguments[0], str) else arguments[0].decode("utf-8", "replace"))
        known = (folder, CORPUS, Path(sys.prefix), Path(sys.base_prefix), Path("/proc/self"))
        if place.is_absolute() and not any(place.is_relative_to(one) for one in known):
            raise AssertionError(f"{place} was opened")

    sys.addaudithook(hook)


def main(reader: str, seed: int, first: int, count: int, folder: Path) -> None:
    """Read them one after the other."""
    read = READERS[reader][0]
    with np.errstate(all="ignore"):
        for name in READERS[reader][1]:  # all is imported before memory is bounded
            (folder / name).write_bytes((CORPUS / name).read_bytes())
            try:
                read(folder / name)
            except AntisparseError:
                assert reader == "manifest"  # whose files are not beside it
        guard(folder)
        with open(folder / "at", "wb", buffering=0) as at:
            for number in range(first, first + count):
                at.seek(0)
                at.write(f"{number:<20}".encode())
                name, data = mutation(reader, seed, number)
                (folder / name).write_bytes(data)
                signal.alarm(SECONDS)
                try:
                    read(folder / name)
                except AntisparseError:
                    pass
                except BaseException:
                    traceback.print_exc()
                    sys.exit(3)
                signal.alarm(0)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]).resolve())
