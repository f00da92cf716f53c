from .commands import Command as Command
from .start import main as main

__all__ = ["Command", "main"]
