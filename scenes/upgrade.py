"""Reads scenes written for older formats: renames what was renamed, and in tolerant mode warns of what is gone.

Versions below 2.0 wrote camelCase names, `<lookAt>`, low dynamic range films and other things that later formats
dropped. Renaming keeps the meaning. Replacing a plugin (a sampler, an integrator) keeps the scene but not every sample
of the picture, hence the warnings.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, Final

import numpy as np

from ..render.registry import known
from ..render.transform import ScalarTransform4f
from ..render.values import Rgb, SpectrumValue
from .nodes import Child, Document, Location, Node, Property, SceneWarning
from .xml_reader import Element

__all__ = ["rename_elements", "snake_case", "upgrade_nodes"]

_TAGS: Final = {"lookAt": "lookat", "luminaire": "emitter", "camera": "sensor", "blackBody": "blackbody"}
_DROPPED_TAGS: Final = ("subsurface",)

# (kind, old plugin) -> new plugin
_PLUGINS: Final = {
    ("film", "ldrfilm"): "hdrfilm", ("film", "mfilm"): "hdrfilm", ("film", "tiledhdrfilm"): "hdrfilm",
    ("film", "exrfilm"): "hdrfilm", ("film", "pngfilm"): "hdrfilm",
    ("sampler", "sobol"): "independent", ("sampler", "halton"): "independent",
    ("sampler", "hammersley"): "independent", ("sampler", "sampler"): "independent",
    ("integrator", "volpath_simple"): "volpath", ("integrator", "bdpt"): "path", ("integrator", "mlt"): "path",
    ("integrator", "pssmlt"): "path", ("integrator", "erpt"): "path", ("integrator", "photonmapper"): "path",
    ("integrator", "ppm"): "path", ("integrator", "sppm"): "path", ("integrator", "vpl"): "path",
    ("bsdf", "roughdiffuse"): "diffuse", ("bsdf", "lambertian"): "diffuse", ("bsdf", "bump"): "bumpmap",
    ("bsdf", "mixture"): "mixturebsdf",
    ("texture", "ldrtexture"): "bitmap", ("texture", "exrtexture"): "bitmap",
    ("texture", "vertexcolors"): "mesh_attribute",
}
# (plugin, old property) -> new property, after camelCase is gone
_PROPERTIES: Final = {
    ("diffuse", "diffuse_reflectance"): "reflectance",
    ("hdrfilm", "high_quality_edges"): "sample_border",
    ("homogeneous", "density_multiplier"): "scale", ("heterogeneous", "density_multiplier"): "scale",
    ("heterogeneous", "density"): "sigma_t",
    ("bitmap", "wrap_mode_u"): "wrap_mode", ("envmap", "intensity_scale"): "scale",
}
_OLD_VALUES: Final = {
    ("bitmap", "filter_type"): {"ewa": "bilinear", "trilinear": "bilinear"},
    ("bitmap", "wrap_mode"): {"zero": "clamp", "one": "clamp"},
    ("hdrfilm", "pixel_format"): {
        "luminanceAlpha": "luminance_alpha", "luminancealpha": "luminance_alpha", "spectrum": "rgb",
        "spectrumAlpha": "rgba",
    },
}
_OLD_DISTRIBUTIONS: Final = ("phong", "as")


def _warn(place: Location, message: str) -> None:
    warnings.warn(f"{place}: {message}", SceneWarning, stacklevel=3)


def rename_elements(root: Element) -> None:
    """Rename old tags in a tree of elements, in place, with warnings; drop those that have no successor."""
    stack = [root]
    while stack:
        element = stack.pop()
        new = _TAGS.get(element.tag)
        if new is not None:
            _warn(element.location, f"<{element.tag}> is read as <{new}>")
            element.tag = new
        for child in element.children:
            if child.tag in _DROPPED_TAGS:
                _warn(child.location, f"<{child.tag}> is not supported and left out")
        element.children = [child for child in element.children if child.tag not in _DROPPED_TAGS]
        stack.extend(element.children)


def snake_case(name: str) -> str:
    """Return a camelCase name in snake_case; a run of capitals is one word, so that intIOR becomes int_ior."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def upgrade_nodes(document: Document) -> None:
    """Upgrade the nodes of old files in place; references must be resolved before."""
    for node in list(document.nodes):
        if not node.old:
            continue
        _rename_camel_case(node)
        if node.tolerant:
            _replace_plugin(node)
        _rename_properties(node)
        _uv_transform(node)
        if node.tolerant:
            _old_values(node)
            _film(node)
            _medium(node)
            _bitmap_gamma(node)
            _mixture(document, node)
    for node in list(document.nodes):
        if node.tolerant:
            _medium_boundary(document, node)


def _rename(node: Node, old: str, new: str) -> None:
    """Rename a property, keeping the order of all; a clash raises SceneError."""
    if new in node.properties:
        place = node.properties[old].location
        place.fail(f'the property "{old}" is an old name of "{new}", which is given too, '
                   f"at {node.properties[new].location}")
    node.properties = {new if name == old else name: prop for name, prop in node.properties.items()}


def _rename_camel_case(node: Node) -> None:
    for name in list(node.properties):
        new = snake_case(name)
        if new != name and not name.startswith("_arg_"):
            _rename(node, name, new)


def _replace_plugin(node: Node) -> None:
    new = _PLUGINS.get((node.kind, node.plugin))
    if new is None and (node.kind, node.plugin) == ("sampler", "ldsampler") and "ldsampler" not in known("sampler"):
        new = "independent"
    if new is not None:
        _warn(node.location, f'the {node.kind} "{node.plugin}" is read as "{new}"')
        node.plugin = new


def _rename_properties(node: Node) -> None:
    for (plugin, old), new in _PROPERTIES.items():
        if node.plugin == plugin and old in node.properties:
            _rename(node, old, new)


def _uv_transform(node: Node) -> None:
    """Gather uoffset, voffset, uscale, vscale as to_uv = scale @ translation, the product that Mitsuba 3 makes."""
    names = ("uoffset", "voffset", "uscale", "vscale")
    given = {name: node.properties[name] for name in names if name in node.properties}
    if not given or node.kind != "texture":
        return
    numbers = [0.0, 0.0, 1.0, 1.0]
    for name, prop in given.items():
        if isinstance(prop.value, bool) or not isinstance(prop.value, (int, float)):
            prop.location.fail(f'the property "{name}" must be a number')
        numbers[names.index(name)] = float(prop.value)
        del node.properties[name]
    uoffset, voffset, uscale, vscale = numbers
    place = next(iter(given.values())).location
    if "to_uv" in node.properties:
        place.fail("uscale, vscale, uoffset and voffset cannot stand beside to_uv")
    matrix = ScalarTransform4f().scale([uscale, vscale, 1.0]).translate([uoffset, voffset, 0.0])
    node.properties["to_uv"] = Property(matrix, place)


def _old_values(node: Node) -> None:
    for (plugin, name), values in _OLD_VALUES.items():
        prop = node.properties.get(name)
        if node.plugin == plugin and prop is not None and prop.value in values:
            new = values[prop.value]
            _warn(prop.location, f'{name} "{prop.value}" is read as "{new}"')
            prop.value = new
    prop = node.properties.get("distribution")
    if node.kind == "bsdf" and prop is not None and prop.value in _OLD_DISTRIBUTIONS:
        _warn(prop.location, f'the distribution "{prop.value}" is read as "beckmann"')
        prop.value = "beckmann"


def _film(node: Node) -> None:
    """Drop formats that a film of linear values cannot write."""
    prop = node.properties.get("file_format")
    if node.kind == "film" and prop is not None and prop.value not in ("openexr", "rgbe", "pfm"):
        _warn(prop.location, f'the film format "{prop.value}" is read as "openexr"; write pictures by their extension')
        del node.properties["file_format"]


def _bitmap_gamma(node: Node) -> None:
    """Read gamma = 1 as raw, and leave out the automatic value -1."""
    prop = node.properties.get("gamma")
    if node.plugin != "bitmap" or prop is None or prop.value not in (1, -1):
        return
    if prop.value == 1 and "raw" not in node.properties:
        node.properties["raw"] = Property(True, prop.location)
    del node.properties["gamma"]


def _numbers(value: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return three numbers for a number or colour, None for anything else."""
    if isinstance(value, Rgb):
        return value.array
    if isinstance(value, SpectrumValue):
        value = value.value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return np.full(3, float(value))
    return None


def _medium(node: Node) -> None:
    """Turn absorption and scattering into extinction and albedo."""
    absorption, scattering = node.properties.get("sigma_a"), node.properties.get("sigma_s")
    if node.kind != "medium" or (absorption is None and scattering is None):
        if node.kind == "medium" and "material" in node.properties:
            node.properties["material"].location.fail(
                "medium presets by material name are not supported; give sigma_t and albedo")
        return
    place = (absorption or scattering or Property(None, node.location)).location
    if "sigma_t" in node.properties or "albedo" in node.properties:
        place.fail("sigma_a and sigma_s cannot stand beside sigma_t and albedo")
    zero = np.zeros(3)
    a = zero if absorption is None else _numbers(absorption.value)
    s = zero if scattering is None else _numbers(scattering.value)
    if a is None or s is None:
        place.fail("sigma_a and sigma_s must be numbers or colours; give sigma_t and albedo instead")
    total = a + s
    albedo = np.divide(s, total, out=np.zeros(3), where=total > 0.0)
    _warn(place, "sigma_a and sigma_s are read as sigma_t and albedo")
    node.properties = {n: p for n, p in node.properties.items() if n not in ("sigma_a", "sigma_s")}
    node.properties["sigma_t"] = Property(_plain(total), place)
    node.properties["albedo"] = Property(_plain(albedo), place)


def _plain(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> float | Rgb:
    """Return one number where all three are equal, else a colour."""
    values = [float(x) for x in numbers]
    return values[0] if values[0] == values[1] == values[2] else Rgb(*values)


def _mixture(document: Document, node: Node) -> None:
    """Turn a weighted mixture of materials into nested blends of two."""
    if node.kind != "bsdf" or node.plugin != "mixturebsdf":
        return
    prop = node.properties.pop("weights", None)
    text = prop.value if prop is not None else ""
    parts = [part for part in re.split(r"[,\s]+", text) if part] if isinstance(text, str) else [str(text)]
    try:
        weights = [float(part) for part in parts]
    except ValueError:
        weights = []
    children = [(n, p) for n, p in node.properties.items() if isinstance(p.value, Child)]
    place = prop.location if prop is not None else node.location
    if len(weights) != len(children) or len(children) < 2 or min(weights) < 0.0 or sum(weights) <= 0.0:
        place.fail(f"mixturebsdf: needs at least 2 materials with one weight each, found {len(children)} and {text!r}")
    if abs(sum(weights) - 1.0) > 1e-4:
        _warn(place, f"the weights sum to {sum(weights):g} and are scaled to 1")
    _warn(node.location, 'the bsdf "mixturebsdf" is read as "blendbsdf"')
    node.properties = {n: p for n, p in node.properties.items() if not isinstance(p.value, Child)}
    node.plugin = "blendbsdf"
    target, remaining = node, sum(weights)
    for position, (_, child) in enumerate(children[:-1]):
        target.properties["weight"] = Property(1.0 - weights[position] / remaining if remaining > 0 else 0.0, place)
        target.properties["first"] = child
        remaining -= weights[position]
        if position == len(children) - 2:
            target.properties["second"] = children[-1][1]
        else:
            blend = Node("bsdf", "blendbsdf", node.location, old=True, tolerant=True, folder=node.folder)
            target.properties["second"] = Property(Child(document.append(blend)), place)
            target = blend


def _medium_boundary(document: Document, node: Node) -> None:
    """Give shapes that only bound a medium the null material that old files left out."""
    if node.kind != "shape":
        return
    kinds = [document.nodes[index].kind for index in node.children()]
    if "medium" in kinds and "bsdf" not in kinds:
        _warn(node.location, "the shape bounds a medium and has no material; it gets the null material")
        null = Node("bsdf", "null", node.location, old=True, tolerant=True, folder=node.folder)
        node.add(None, Child(document.append(null)), node.location)
