"""One reader, led by the coverage of the library's own code.

    PYTHONPATH=tests python tests/fuzz/guided.py READER FOLDER SECONDS

FOLDER keeps the inputs that reached new code, from one run to the next. An error that is none of the library's ends it,
and the input is kept under the name that is printed.
"""

import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["antisparse"]):
    from readers import CORPUS, READERS

    from antisparse.errors import AntisparseError


def main(reader: str, folder: Path, seconds: int) -> None:
    """Fuzz until the time is over."""
    read, names = READERS[reader]
    kept = folder / reader
    kept.mkdir(parents=True, exist_ok=True)
    for name in names:
        (kept / name).write_bytes((CORPUS / name).read_bytes())
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / names[0]

        def one(data: bytes) -> None:
            file.write_bytes(data)
            try:
                with np.errstate(all="ignore"):
                    read(file)
            except AntisparseError:
                pass

        options = [f"-max_total_time={seconds}", "-max_len=8192", "-rss_limit_mb=3000", "-timeout=20", "-verbosity=0"]
        atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={kept}/crash-", str(kept)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
