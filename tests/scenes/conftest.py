"""Small plugins that stand for the real ones, so that the loaders are tested without a renderer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from luxgrad.render import registry
from luxgrad.render.properties import Properties
from luxgrad.render.registry import Parameter


class Fake:
    """Keeps what its properties hold."""

    parameters: tuple[Parameter, ...] = ()

    def __init__(self, props: Properties) -> None:
        self.props = props
        self.name = props.id
        self.values = {p.name: props.get(p.name) for p in self.parameters}

    def set_id(self, name: str) -> None:
        self.name = name

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


class Scene(Fake):
    def __init__(self, props: Properties) -> None:
        super().__init__(props)
        self.children = dict(props.objects())

    def __getitem__(self, name: str) -> Any:
        return self.children[name]


class Group(Fake):
    """A shape that expands to its parts."""

    parameters = (Parameter("shapes", "shape", many=True),)

    def expand(self) -> list[Any]:
        return list(self["shapes"])


class Broken(Fake):
    def __init__(self, props: Properties) -> None:
        raise RuntimeError("boom")


_SHAPE = (
    Parameter("to_world", "transform", None), Parameter("bsdf", "bsdf", None), Parameter("emitter", "emitter", None),
    Parameter("interior", "medium", None), Parameter("exterior", "medium", None),
)
_TABLES: dict[tuple[str, str], tuple[Parameter, ...]] = {
    ("bsdf", "diffuse"): (Parameter("reflectance", "texture", 0.5),),
    ("bsdf", "twosided"): (Parameter("nested", "bsdf", many=True),),
    ("bsdf", "blendbsdf"): (Parameter("weight", "texture", 0.5), Parameter("nested", "bsdf", many=True)),
    ("bsdf", "dielectric"): (Parameter("int_ior", "ior", "bk7"), Parameter("ext_ior", "ior", "air")),
    ("bsdf", "conductor"): (Parameter("eta", "unbounded", 0.0),),
    ("bsdf", "bumpmap"): (Parameter("nested_texture", "texture", by_type=True), Parameter("nested", "bsdf")),
    ("bsdf", "null"): (),
    ("emitter", "area"): (Parameter("radiance", "emissive", 1.0),),
    ("emitter", "constant"): (Parameter("radiance", "emissive", 1.0),),
    ("film", "hdrfilm"): (
        Parameter("width", "int", 768), Parameter("height", "int", 576), Parameter("rfilter", "rfilter", None),
        Parameter("pixel_format", "string", "rgb", choices=("rgb", "rgba", "luminance", "luminance_alpha")),
    ),
    ("integrator", "path"): (
        Parameter("max_depth", "int", -1), Parameter("rr_depth", "int", 5), Parameter("hide_emitters", "bool", False),
    ),
    ("medium", "homogeneous"): (
        Parameter("sigma_t", "volume", 1.0), Parameter("albedo", "volume", 0.75), Parameter("scale", "float", 1.0),
    ),
    ("rfilter", "box"): (),
    ("sampler", "independent"): (Parameter("sample_count", "int", 4),),
    ("sensor", "perspective"): (
        Parameter("fov", "float", None), Parameter("fov_axis", "string", "x"), Parameter("near_clip", "float", 0.01),
        Parameter("far_clip", "float", 1e4), Parameter("to_world", "transform", None),
        Parameter("film", "film", None), Parameter("sampler", "sampler", None),
    ),
    ("shape", "sphere"): (*_SHAPE, Parameter("radius", "float", 1.0), Parameter("center", "point", [0, 0, 0])),
    ("shape", "rectangle"): _SHAPE,
    ("shape", "obj"): (*_SHAPE, Parameter("filename", "string")),
    ("texture", "uniform"): (Parameter("value", "float"),),
    ("texture", "srgb"): (Parameter("color", "spectrum"), Parameter("unbounded", "bool", False)),
    ("texture", "checkerboard"): (
        Parameter("color0", "texture", 0.4), Parameter("color1", "texture", 0.2),
        Parameter("to_uv", "transform2", None),
    ),
    ("texture", "bitmap"): (
        Parameter("filename", "string", None), Parameter("bitmap", "any", None), Parameter("raw", "bool", False),
        Parameter("to_uv", "transform2", None),
    ),
    ("volume", "constvolume"): (Parameter("value", "unbounded"),),
}


class Mesh(Fake):
    def __init__(self, props: Properties) -> None:
        super().__init__(props)
        self.path = props.resolve(self["filename"])


_BASES: dict[str, type[Fake]] = {"obj": Mesh}


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace the registry by the plugins above for one test."""
    for kind in registry.KINDS:
        registry.known(kind)  # plugins that are first imported while the list is replaced would be lost
    monkeypatch.setattr(registry, "_entries", {})
    monkeypatch.setattr(registry, "_walked", set(registry.KINDS))
    for (kind, name), table in _TABLES.items():
        members: dict[str, Any] = {"parameters": table}
        if name == "hdrfilm":
            members["ignored"] = ("banner",)
        registry.register(kind, name)(type(name, (_BASES.get(name, Fake),), members))
    for kind, name, base in (("scene", "scene", Scene), ("shape", "group", Group), ("shape", "broken", Broken)):
        registry.register(kind, name)(type(name, (base,), {}))
    yield


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a scene file, wrapping a body in a root unless it has one."""

    def make(body: str, name: str = "scene.xml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        has_root = body.startswith("<") and "version=" in body
        path.write_text(body if has_root else f'<scene version="3.0.0">\n{body}\n</scene>')
        return path

    return make
