"""Scenes written as XML and as dictionaries load to the same scene."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.errors import SceneError
from luxgrad.render.transform import ScalarTransform3f, ScalarTransform4f
from luxgrad.scenes.loader import load_dict, load_file, load_string, parse_string
from luxgrad.scenes.writer import dict_to_xml, document_to_dict, document_to_xml, write_dict

SCENE: dict[str, Any] = {
    "type": "scene",
    "steel": {"type": "diffuse", "reflectance": {"type": "rgb", "value": [0.1, 0.2, 1 / 3]}},
    "camera": {"type": "perspective", "fov": 40.5,
               "to_world": ScalarTransform4f().look_at([1, 2, 3], [0, 0, 0], [0, 1, 0]),
               "film": {"type": "hdrfilm", "width": 12, "filter": {"type": "box"}}},
    "ball": {"type": "sphere", "center": [1, 2.5, 1e-7], "radius": 2,
             "skin": {"type": "diffuse", "reflectance": 0.25}},
    "other": {"type": "sphere", "bsdf": {"type": "ref", "id": "ball.skin"}},
    "glow": {"type": "constant", "radiance": {"type": "spectrum", "value": [(400, 0.5), (700, 1.5)]}},
    "path": {"type": "path", "hide_emitters": True},
    "glass": {"type": "dielectric", "int_ior": "a < \"b\" & $c"},
    "tiles": {"type": "checkerboard", "to_uv": ScalarTransform3f().scale([3, 4])},
}


def check(root: Any) -> None:
    """Compare a loaded scene with the dictionary above."""
    made = {child.name: child for child in root.children.values()}
    assert np.array_equal(made["steel"]["reflectance"]["color"], [0.1, 0.2, 1 / 3])
    assert made["camera"]["to_world"] == SCENE["camera"]["to_world"] and made["camera"]["fov"] == 40.5
    assert made["camera"]["film"]["width"] == 12 and made["camera"]["film"]["rfilter"].plugin_name == "box"
    assert made["ball"]["center"].tolist() == [1, 2.5, 1e-7] and made["ball"]["radius"] == 2.0
    assert made["other"]["bsdf"] is made["ball"]["bsdf"]
    assert np.array_equal(made["glow"]["radiance"]["color"], load_dict(SCENE)["glow"]["radiance"]["color"])
    assert made["path"]["hide_emitters"] is True
    assert made["glass"]["int_ior"] == "a < \"b\" & $c"
    assert made["tiles"]["to_uv"] == SCENE["tiles"]["to_uv"]


def test_dictionary_to_xml(tmp_path: Path) -> None:
    check(load_dict(SCENE))
    check(load_string(dict_to_xml(SCENE)))
    write_dict(SCENE, tmp_path / "a.xml")
    check(load_file(tmp_path / "a.xml"))


def test_xml_to_dictionary() -> None:
    document = parse_string(dict_to_xml(SCENE))
    check(load_dict(document_to_dict(document)))
    assert document_to_xml(document) == dict_to_xml(SCENE)


def test_nameless_and_shared_objects_get_keys() -> None:
    text = ('<scene version="3.0.0"><shape type="sphere"><bsdf type="diffuse" id="Mat.1"/></shape>'
            '<shape type="sphere"><ref id="Mat.1"/></shape></scene>')
    entries = document_to_dict(parse_string(text))
    assert list(entries) == ["type", "shape", "shape_1"]
    root = load_dict(entries)
    assert root["shape"]["bsdf"] is root["shape_1"]["bsdf"] and root["shape"]["bsdf"].name == "Mat.1"


def test_what_xml_cannot_hold_is_named() -> None:
    with pytest.raises(SceneError, match=r'"tiles\.bitmap": the property "bitmap" \(ndarray\) cannot be written'):
        dict_to_xml({"tiles": {"type": "bitmap", "bitmap": np.zeros((4, 4, 3))}})
    with pytest.raises(SceneError, match="an object of type"):
        dict_to_xml({"ball": load_dict({"type": "sphere"})})
