"""Settings by name: what a function or dataclass takes, checked and converted, unknown names with a suggestion.

TOML has no null and a command line has only texts, so ``"none"`` stands for None where None is allowed.
"""

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Literal, Union, get_args, get_origin

from h2hgcn.errors import DataError

NONE = "none"


def option_types(target: Callable[..., Any], leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """The names that ``target`` takes, and their annotations."""
    parameters = inspect.signature(target, eval_str=True).parameters.values()
    return {
        each.name: Any if each.annotation is each.empty or isinstance(each.annotation, str) else each.annotation
        for each in parameters
        if each.name not in leave_out
    }


def default_options(target: Callable[..., Any]) -> dict[str, Any]:
    """What ``target`` takes for options that are not given."""
    parameters = inspect.signature(target).parameters
    return {name: each.default for name, each in parameters.items() if each.default is not inspect.Parameter.empty}


def changed_options(options: Mapping[str, Any], target: Callable[..., Any]) -> dict[str, Any]:
    """The options that are not what ``target`` takes by default."""
    defaults = default_options(target)
    return {name: value for name, value in options.items() if defaults.get(name, ...) != value}


def checked_options(given: Mapping[str, Any], known: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The options that were given, as values of the annotated types. ``where`` is named in errors, such as "[task]"."""
    for name in given:
        if name not in known:
            raise DataError(f"{where} has no option {name!r}; {suggestion(name, known)}")
    return {name: _converted(value, known[name], f"{where} {name}") for name, value in given.items()}


def conform(instance: Any, where: str) -> None:
    """Brings the fields of a frozen dataclass to their annotated types; called by its ``__post_init__``."""
    kinds = option_types(type(instance))
    for name, value in checked_options({name: getattr(instance, name) for name in kinds}, kinds, where).items():
        object.__setattr__(instance, name, value)


def require(instance: Any, where: str, names: Iterable[str], fits: Callable[[Any], bool], rule: str) -> None:
    """Raises unless the named fields, where they are not None, keep to a rule, such as "must be at least 1"."""
    for name in names:
        value = getattr(instance, name)
        if value is not None and not fits(value):
            raise DataError(f"{where}.{name}={value} {rule}")


def suggestion(name: str, known: Any) -> str:
    """What may have been meant."""
    close = get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as TOML can hold them."""
    return {name: NONE if value is None else value for name, value in options.items()}


def _converted(value: Any, kind: Any, where: str) -> Any:
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if types.NoneType in kinds and (value is None or value == NONE):
        return None
    literals = [choice for k in kinds if get_origin(k) is Literal for choice in get_args(k)]
    if value in literals:
        return value
    if literals and not {bool, int, float, str}.intersection(kinds):
        raise DataError(f"{where}={value!r} is not known; use one of {', '.join(map(str, literals))}")
    if bool in kinds and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if not isinstance(value, bool):
        number = None
        with suppress(TypeError, ValueError, OverflowError):
            if int in kinds and not isinstance(value, float):
                number = int(value)
        if number is not None:
            if abs(number) > _LARGEST:
                raise DataError(f"{where} has more than 64 bits; choose a smaller number")
            return number
        with suppress(TypeError, ValueError, OverflowError):
            if float in kinds:
                return float(value)
    if Any in kinds or (str in kinds and isinstance(value, str)):
        return value
    wanted = " or ".join([*(_NAMES[k] for k in kinds if k in _NAMES), *map(repr, literals)])
    raise DataError(f"{where}={value!r} must be {wanted or 'something else'}")


_LARGEST = 2**63 - 1  # as NumPy and PyTorch can hold it

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text", types.NoneType: f"'{NONE}'"}
