"""The rules of scene dictionaries, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.errors import SceneError
from luxgrad.render.transform import ScalarTransform3f, ScalarTransform4f
from luxgrad.scenes.loader import load_dict


def scene(**entries: Any) -> Any:
    return load_dict({"type": "scene", **entries})


def test_root_defaults_to_a_scene_and_may_be_another_object() -> None:
    assert load_dict({"s": {"type": "sphere"}})["s"].plugin_name == "sphere"
    assert load_dict({"type": "sphere", "radius": 2})["radius"] == 2.0


def test_keys_become_ids_and_an_id_entry_wins() -> None:
    root = scene(a={"type": "sphere"}, b={"type": "sphere", "id": "c", "bsdf": {"type": "diffuse"}})
    assert root["a"].name == "a" and root["b"].name == "c" and root["b"]["bsdf"].name == "bsdf"


def test_values_of_every_type() -> None:
    made = scene(s={
        "type": "sphere", "radius": np.float32(2), "center": np.array([1, 2, 3]),
        "to_world": ScalarTransform4f().translate((1, 2, 3)),
    })["s"]
    assert made["radius"] == 2.0 and made["center"].tolist() == [1, 2, 3]
    assert made["to_world"].translation().tolist() == [1, 2, 3]
    path = load_dict({"type": "path", "max_depth": np.int64(3), "hide_emitters": np.bool_(True)})
    assert path["max_depth"] == 3 and path["hide_emitters"] is True
    assert load_dict({"type": "sphere", "center": (4, 5, 6)})["center"].tolist() == [4, 5, 6]


def test_arrays_of_other_shapes_pass_as_they_are() -> None:
    data = np.zeros((4, 4, 3))
    assert load_dict({"type": "bitmap", "bitmap": data})["bitmap"] is data


def test_transforms_of_plane_and_space() -> None:
    plane = ScalarTransform3f().scale((2, 3))
    assert load_dict({"type": "bitmap", "to_uv": plane})["to_uv"] == plane
    space = ScalarTransform4f().translate((5, 6, 7)).scale((2, 3, 4))
    assert load_dict({"type": "bitmap", "to_uv": space})["to_uv"].matrix.tolist() == [[2, 0, 5], [0, 3, 6], [0, 0, 1]]
    assert load_dict({"type": "sphere", "to_world": plane})["to_world"].matrix[1].tolist() == [0, 3, 0, 0]

    class Foreign:
        matrix = np.eye(4)[:, :, None] * 2

    assert load_dict({"type": "sphere", "to_world": Foreign()})["to_world"].matrix[0, 0] == 2
    assert load_dict({"type": "sphere", "to_world": np.eye(4)})["to_world"] == ScalarTransform4f()


def test_colours_and_spectra() -> None:
    def reflectance(value: Any) -> Any:
        return load_dict({"type": "diffuse", "reflectance": value})["reflectance"]

    assert reflectance({"type": "rgb", "value": [0.1, 0.2, 0.3]})["color"].tolist() == [0.1, 0.2, 0.3]
    assert reflectance({"type": "rgb", "value": 0.5})["color"].tolist() == [0.5] * 3
    assert reflectance({"type": "rgb", "value": np.array([0.5, 0, 0])})["color"].tolist() == [0.5, 0, 0]
    assert reflectance({"type": "spectrum", "value": 0.5})["value"] == 0.5
    pairs = reflectance({"type": "spectrum", "value": [(400, 0.2), (500, 0.4), (700, 0.9)]})["color"]
    assert np.allclose(pairs, [0.753834, 0.505378, 0.277034], atol=1e-5)
    assert reflectance(1.2)["value"] == 1.2


def test_references_to_ids_and_paths_forward_too() -> None:
    root = scene(
        first={"type": "sphere", "bsdf": {"type": "ref", "id": "mat"}},
        second={"type": "sphere", "bsdf": {"type": "ref", "id": "third.bsdf"}},
        third={"type": "sphere", "bsdf": {"type": "diffuse"}},
        other={"type": "diffuse", "id": "mat"},
    )
    assert root["first"]["bsdf"] is root["other"] and root["second"]["bsdf"] is root["third"]["bsdf"]


def test_objects_passed_as_values_keep_identity_and_take_the_key() -> None:
    material = load_dict({"type": "diffuse"})
    root = scene(steel=material, a={"type": "sphere", "mat": material}, b={"type": "sphere",
                 "mat": {"type": "ref", "id": "steel"}})
    assert root["steel"] is material and root["a"]["bsdf"] is material and root["b"]["bsdf"] is material
    assert load_dict({"steel": material})["steel"].name == "steel"


def test_types_reach_every_object_and_the_textures_made_for_it() -> None:
    class Variant:
        pass

    made = load_dict({"type": "sphere", "bsdf": {"type": "diffuse"}}, types=Variant)
    assert made.props.types is Variant and made["bsdf"]["reflectance"].props.types is Variant


def test_resource_folders(tmp_path: Path) -> None:
    (tmp_path / "far.obj").write_text("")
    root = scene(folder={"type": "resources", "path": str(tmp_path)}, m={"type": "obj", "filename": "far.obj"})
    assert root["m"].path == tmp_path / "far.obj"


ERRORS: list[tuple[Any, str]] = [
    ({"a.b": {"type": "sphere"}}, "contains a '.' character"),
    ({3: {"type": "sphere"}}, "Dictionary keys must be strings"),
    ({"a": {"b": 1}}, """dictionary node "a": missing 'type' attribute"""),
    ({"a": {"type": 3}}, "'type' must be a string, got int"),
    ({"a": {"type": "sphere", "radius": None}}, 'dictionary node "a.radius": the value is None'),
    ({"a": {"type": "rgb", "value": 1, "c": 1}}, "'rgb' dictionary should contain 2 entries"),
    ({"a": {"type": "sphere", "b": {"type": "rgb", "value": "q"}}}, "could not interpret 'q' as a color"),
    ({"a": {"type": "spectrum", "value": 1, "filename": "x"}}, "'spectrum' dictionary should contain 2 entries"),
    ({"a": {"type": "spectrum", "value": [(400, 1), (300, 1)]}}, "increasing order"),
    ({"a": {"type": "spectrum", "value": [1, 2, 3]}}, "could not interpret"),
    ({"a": {"type": "ref", "id": "n"}}, 'unresolved reference to "n" in property "a"'),
    ({"a": {"type": "ref", "name": "n"}}, "should contain exactly 'type' and 'id'"),
    ({"a": {"type": "sphere", "q": {"type": "resources", "path": "."}}}, "root of the dictionary"),
    ({"a": {"type": "resources", "path": "/nowhere/at/all"}}, 'resource folder "/nowhere/at/all" not found'),
    ({"a": {"type": "sphere", "radius": [1, 2]}}, "expected float, got list"),
    ({"a": {"type": "sphere", "radius": True}}, "expected float, got boolean"),
    ({"type": "diffuse", "reflectance": [0.1, 0.2, 0.3]}, "{'type': 'rgb', 'value': [0.1, 0.2, 0.3]}"),
    ({"a": {"type": "sphere", "id": "q"}, "b": {"type": "sphere", "id": "q"}}, 'duplicate ID: "q"'),
    ({"a": {"type": "sphere"}, "b": {"type": "sphere", "id": "a"}}, 'duplicate ID: "a"'),
    ({"a": {"type": "sphre"}}, 'unknown plugin "sphre"; did you mean "sphere"?'),
    ({"a": {"type": "sphere", "radios": 1.0}}, 'float "radios": 1 at dictionary node "a.radios"'),
    ({"a": {"type": "twosided", "n": {"type": "ref", "id": "a"}}}, "circular reference detected: a -> a"),
    ({"a": {"type": "scene"}}, "a scene can only be the root"),
    ([], "expected a dictionary, got list"),
]


@pytest.mark.parametrize(("broken", "message"), ERRORS, ids=[message[:40] for _, message in ERRORS])
def test_broken_dictionary(broken: Any, message: str) -> None:
    with pytest.raises(SceneError) as caught:
        load_dict(broken)
    assert message in str(caught.value)


def test_a_dictionary_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {"type": "twosided"}
    loop["a"] = loop
    with pytest.raises(SceneError, match="nested more than"):
        load_dict(loop)
