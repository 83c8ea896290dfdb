"""Exceptions and warnings."""


class DataError(ValueError):
    """Data that cannot be used as they are. The message says what came, where (file and line), and what to do."""


class PlaceError(DataError):
    """A file or folder that cannot be read or written as it is: other settings would not help."""


class DamagedRunError(PlaceError):
    """An unfinished or finished run with a damaged or missing file."""


class DataWarning(UserWarning):
    """Something about the data that its user should know: what was left out, made up, or found in two splits."""


class NonFiniteError(ArithmeticError, ValueError):
    """NaN or infinity where numbers should be: in the data, or in weights that diverged."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message without its period, or the name of its class if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
