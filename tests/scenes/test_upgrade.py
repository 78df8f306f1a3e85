"""Old files load with warnings; strict files do not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.errors import SceneError
from luxgrad.render.values import Rgb
from luxgrad.scenes.loader import load_string, parse_string
from luxgrad.scenes.nodes import SceneWarning
from luxgrad.scenes.upgrade import snake_case

OLD = """<scene version="0.6.0">
 <integrator type="path"><integer name="maxDepth" value="4"/><boolean name="strictNormals" value="true"/></integrator>
 <sensor type="perspective"><float name="fov" value="40"/><string name="fovAxis" value="smaller"/>
  <float name="nearClip" value="0.1"/><float name="farClip" value="100"/>
  <transform name="toWorld"><lookAt origin="0,0,4" target="0,0,0" up="0,1,0"/></transform>
  <sampler type="sobol"><integer name="sampleCount" value="16"/><integer name="scramble" value="3"/></sampler>
  <film type="ldrfilm"><integer name="width" value="12"/><integer name="height" value="8"/>
   <boolean name="banner" value="false"/><string name="fileFormat" value="png"/><float name="gamma" value="2.2"/></film>
 </sensor>
 <bsdf type="diffuse" id="_01 - Default"><srgb name="diffuseReflectance" value="#18455c"/></bsdf>
 <shape type="rectangle"><transform name="toWorld"><scale x="9" y="9"/></transform><ref id="_01 - Default"/></shape>
 <emitter type="constant"/>
</scene>"""


def old(body: str, **options: Any) -> Any:
    return load_string(f'<scene version="0.6.0">{body}</scene>', **options)


def test_old_file_as_a_whole() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        root = load_string(OLD)
    camera = root["_arg_1"]
    assert root["_arg_0"]["max_depth"] == 4
    assert camera["fov_axis"] == "smaller" and camera["near_clip"] == 0.1
    assert np.allclose(camera["to_world"].matrix[:3, :3], np.diag([-1, 1, -1]))
    assert camera["film"].plugin_name == "hdrfilm" and camera["film"]["height"] == 8
    assert camera["sampler"].plugin_name == "independent" and camera["sampler"]["sample_count"] == 16
    material = root["_arg_3"]["bsdf"]
    assert np.allclose(material["reflectance"]["color"], [0.0091, 0.0595, 0.1070], atol=1e-4)
    texts = [str(warning.message) for warning in caught]
    assert all(issubclass(warning.category, SceneWarning) for warning in caught)
    for part in ("strict_normals", "<lookAt> is read as <lookat>", '"sobol" is read as "independent"', "scramble",
                 '"ldrfilm" is read as "hdrfilm"', '"png"', "gamma"):
        assert any(part in text for text in texts), (part, texts)
    assert not any("banner" in text for text in texts)
    assert any("string (line 5" in text for text in texts)


def test_strict_from_version_two_unless_forced() -> None:
    new = OLD.replace("0.6.0", "2.0.0")
    with pytest.raises(SceneError, match="unexpected <lookAt>.*write <lookat>"):
        load_string(new)
    with pytest.warns(SceneWarning):
        assert load_string(new, tolerant=True)["_arg_0"]["max_depth"] == 4
    with pytest.raises(SceneError, match="lookAt"):
        load_string(OLD, tolerant=False)


def test_without_tolerance_old_names_are_still_renamed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        root = old('<bsdf type="diffuse"><float name="diffuseReflectance" value=".25"/></bsdf>', tolerant=False)
    assert root["_arg_0"]["reflectance"]["value"] == 0.25


@pytest.mark.parametrize(("name", "new"), [
    ("intIOR", "int_ior"), ("toWorld", "to_world"), ("alphaU", "alpha_u"), ("maxDepth", "max_depth"),
    ("color0", "color0"), ("to_world", "to_world"), ("sigmaT", "sigma_t"), ("rrDepth", "rr_depth"),
])
def test_snake_case(name: str, new: str) -> None:
    assert snake_case(name) == new


def test_uv_scale_and_offset_make_the_product_of_the_peer() -> None:
    root = old('<texture type="checkerboard"><float name="uoffset" value="0.1"/><float name="voffset" value="0.2"/>'
               '<float name="uscale" value="3"/><float name="vscale" value="4"/></texture>')
    assert np.allclose(root["_arg_0"]["to_uv"].matrix, [[3, 0, 0.3], [0, 4, 0.8], [0, 0, 1]])


def test_absorption_and_scattering() -> None:
    text = ('<scene version="0.6.0"><medium type="homogeneous"><rgb name="sigmaA" value="1 0 3"/>'
            '<float name="sigmaS" value="1"/></medium></scene>')
    with pytest.warns(SceneWarning, match="sigma_t and albedo"):
        properties = parse_string(text).nodes[1].properties
    assert properties["sigma_t"].value == Rgb(2.0, 1.0, 4.0)
    assert properties["albedo"].value == Rgb(0.5, 1.0, 0.25)
    with pytest.raises(SceneError, match="unreferenced property"):
        load_string(text.replace("0.6.0", "3.0.0").replace("sigmaA", "sigma_a").replace("sigmaS", "scale"))


def test_medium_boundaries_get_the_null_material() -> None:
    body = '<shape type="sphere">{}<medium name="interior" type="homogeneous"/></shape>'
    with pytest.warns(SceneWarning, match="null material"):
        assert old(body.format(""))["_arg_0"]["bsdf"].plugin_name == "null"
    assert old(body.format('<bsdf type="diffuse"/>'))["_arg_0"]["bsdf"].plugin_name == "diffuse"


def test_mixtures_become_nested_blends() -> None:
    names = "".join(f'<bsdf type="diffuse" id="m{i}"/>' for i in range(3))
    with pytest.warns(SceneWarning, match="blendbsdf"):
        outer = old(f'<bsdf type="mixturebsdf"><string name="weights" value="0.2, 0.2 0.6"/>{names}</bsdf>')["_arg_0"]
    first, rest = outer["nested"]
    assert first.name == "m0" and outer["weight"]["value"] == pytest.approx(0.8)
    assert [made.name for made in rest["nested"]] == ["m1", "m2"] and rest["weight"]["value"] == pytest.approx(0.75)
    with pytest.raises(SceneError, match="one weight each"):
        old(f'<bsdf type="mixturebsdf"><string name="weights" value="0.2"/>{names}</bsdf>')


def test_old_bitmaps() -> None:
    root = old('<texture type="bitmap"><float name="gamma" value="1"/></texture>')
    assert root["_arg_0"]["raw"] is True


def test_unsupported_elements_are_left_out_with_a_warning() -> None:
    with pytest.warns(SceneWarning, match="<subsurface> is not supported"):
        assert old('<shape type="sphere"><subsurface type="dipole"/></shape>')


def test_two_names_of_one_property_clash() -> None:
    with pytest.raises(SceneError, match='"maxDepth" is an old name of "max_depth"'):
        old('<integrator type="path"><integer name="max_depth" value="1"/>'
            '<integer name="maxDepth" value="2"/></integrator>')
