"""What is learned from training vectors: frames, codebooks, and how bytes are split."""

from antisparse.learning.codebooks import learn_codebooks
from antisparse.learning.frames import learn_frame
from antisparse.learning.split import Split, choose_split
from antisparse.learning.training import Learned

__all__ = ["Learned", "Split", "choose_split", "learn_codebooks", "learn_frame"]
