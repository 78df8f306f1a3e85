"""The command `luxgrad`: render, fit, info, cache."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

__all__ = ["build_parser", "main"]

EXIT_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, or 2 after an error, 130 after an interrupt.

    Errors are one message on the error stream; `--debug` raises them with their traceback.
    """
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            options.run(options)
    except KeyboardInterrupt:
        print("luxgrad: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe has gone, as in `luxgrad info | head`
        return 0
    except Exception as error:
        if options.debug:
            raise
        print(f"luxgrad: error: {_text(error)}", file=sys.stderr)
        return EXIT_ERROR
    return 0


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print(f"luxgrad: warning: {message}", file=sys.stderr)


def _text(error: Exception) -> str:
    from luxgrad.jit.errors import LuxgradError

    message = error.args[0] if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, (LuxgradError, OSError, ValueError)) and message:
        return str(message)
    return f"{type(error).__name__}: {message} (--debug shows where)"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="luxgrad", description="Render scenes and fit them to pictures.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="render | fit | info | cache")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    _render_options(commands.add_parser("render", parents=[common], help="render a scene file to an image"))
    _fit_options(commands.add_parser("fit", parents=[common], help="fit parameters of a scene to a picture"))
    _info_options(commands.add_parser("info", parents=[common], help="describe the installation or a scene"))
    _cache_commands(commands.add_parser("cache", help="look after compiled kernels and prepared data"), common)
    return parser


def _scene_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", help="scene file (XML)")
    parser.add_argument("-D", dest="parameters", metavar="NAME=VALUE", action="append", default=[], type=_assignment,
                        help="set $NAME of the scene file; may be repeated")  # fmt: skip
    parser.add_argument("--variant", default="llvm_ad_rgb", help="array types to compute with (%(default)s)")
    parser.add_argument("--integrator", metavar="NAME", help="use this integrator instead of the scene's")
    parser.add_argument("--max-depth", type=int, help="longest path of --integrator, in segments")
    parser.add_argument("--sensor", type=int, default=0, help="number of the sensor (%(default)s)")
    parser.add_argument("--seed", type=_seed, default=0, help="seed of the random numbers (%(default)s)")
    parser.add_argument("--size", type=_size, metavar="WxH", help="size of the picture in pixels")
    parser.add_argument("--quiet", action="store_true", help="no progress bars, no summary")


def _render_options(parser: argparse.ArgumentParser) -> None:
    _scene_options(parser)
    parser.add_argument("-o", "--output", help="image file, EXR or PNG ... (the scene's name with .exr)")
    parser.add_argument("--spp", type=_positive, help="samples per pixel (the scene's)")
    parser.add_argument("--passes", type=_positive, help="render and average so many parts with seeds of their own")
    parser.set_defaults(run=_run_render)


def _fit_options(parser: argparse.ArgumentParser) -> None:
    _scene_options(parser)
    parser.add_argument("--target", required=True, help="the picture to match; sets the size of the film")
    parser.add_argument("--steps", type=_positive, default=100, help="steps of the optimiser (%(default)s)")
    parser.add_argument("--spp", type=_positive, default=16, help="samples per pixel and step (%(default)s)")
    _descent_options(parser)
    parser.add_argument("--checkpoint", metavar="FILE", help="save the state here and go on from it")
    parser.add_argument("--report", metavar="HTML", help="write a page with pictures and curves")
    parser.add_argument("-o", "--output", help="write the picture of the fitted scene")
    parser.add_argument("--save", metavar="NPZ", help="write the fitted parameters, one array per path")
    parser.set_defaults(run=_run_fit)


def _descent_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--params", metavar="REGEX", help="fit parameters whose path has this in it (all but geometry)")
    parser.add_argument("--lr", type=_rate, default=0.02, help="learning rate (%(default)s)")
    parser.add_argument("--lr-end", type=_rate, help="learning rate of the last step (as --lr)")
    parser.add_argument("--optimizer", default="Adam", choices=["Adam", "AdamW", "SGD", "RMSProp"],
                        help="(%(default)s)")  # fmt: skip
    parser.add_argument("--loss", default="l2", choices=["l1", "l2", "relative_l2", "mape", "smooth_l1", "log_l2"],
                        help="(%(default)s)")  # fmt: skip


def _cache_commands(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="list | size | prune | clear | warm")
    for name, text in (
        ("list", "list the files, those used last first"),
        ("size", "tell how much the caches hold"),
        ("prune", "remove what was not used for longest"),
        ("clear", "remove all files"),
    ):
        command = commands.add_parser(name, parents=[common], help=text)
        command.add_argument("which", nargs="?", default="all", choices=["kernels", "data", "all"],
                             help="compiled kernels, prepared data of scenes, or both (%(default)s)")  # fmt: skip
        if name == "prune":
            command.add_argument("--max-size", type=_bytes, metavar="SIZE",
                                 help="what each may hold afterwards, such as 200M (its limit)")  # fmt: skip
        command.set_defaults(run=_run_cache, action=name)
    warm = commands.add_parser("warm", parents=[common], help="compile what rendering and fitting a scene needs")
    _scene_options(warm)
    warm.add_argument("--only", choices=["render", "fit"], help="prepare this command only")
    warm.add_argument("--spp", type=_positive, help="samples per pixel of `render` (the scene's)")
    warm.add_argument("--passes", type=_positive, help="parts of `render`")
    warm.add_argument("--fit-spp", type=_positive, default=16, help="samples per pixel of `fit` (%(default)s)")
    _descent_options(warm)
    warm.set_defaults(run=_run_warm)


def _info_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", nargs="?", help="scene file; without one the installation is described")
    parser.add_argument("-D", dest="parameters", metavar="NAME=VALUE", action="append", default=[], type=_assignment,
                        help="set $NAME of the scene file; may be repeated")  # fmt: skip
    parser.add_argument("--variant", default="llvm_ad_rgb", help="array types to load with (%(default)s)")
    parser.set_defaults(run=_run_info)


# Each command loads what it needs: `luxgrad --help` must not wait for the renderer.


def _run_render(options: argparse.Namespace) -> None:
    from luxgrad.cli.render import run

    run(options)


def _run_fit(options: argparse.Namespace) -> None:
    from luxgrad.cli.fit import run

    run(options)


def _run_info(options: argparse.Namespace) -> None:
    from luxgrad.cli.info import run

    run(options)


def _run_cache(options: argparse.Namespace) -> None:
    from luxgrad.cli import cache

    getattr(cache, f"run_{options.action}")(options)


def _run_warm(options: argparse.Namespace) -> None:
    from luxgrad.cli.warm import run

    run(options)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *args: object, **options: object) -> None:
        from luxgrad import __version__

        print(f"luxgrad {__version__}")
        parser.exit()


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found '{text}'")
    return name, value


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 1 << 32:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0 and below 2^32, found '{text}'")
    return int(text)


def _bytes(text: str) -> int:
    from luxgrad.jit import debug

    try:
        found: int = debug.SETTINGS["cache_maxsize"].read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a size {error}, found '{text}'") from None
    return found


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 32:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 and below 2^32, found '{text}'")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number, found '{text}'")
    return rate


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (text.isascii() and width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"expected WIDTHxHEIGHT such as 640x480, found '{text}'")
    return int(width), int(height)
