"""The rules of XML scenes, one by one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.errors import MissingFileError, SceneError
from luxgrad.render import registry, spectra
from luxgrad.render.properties import Properties
from luxgrad.scenes.loader import load_file, load_string, parse_string
from luxgrad.scenes.nodes import SceneWarning
from luxgrad.scenes.resolver import file_resolver, search_paths

Write = Callable[..., Path]


def scene(body: str, **parameters: Any) -> Any:
    return load_string(f'<scene version="3.0.0">{body}</scene>', **parameters)


def shape(body: str) -> Any:
    return scene(f'<shape type="sphere" id="s">{body}</shape>')["_arg_0"]


def slot(kind: str, plugin: str, name: str, value: str) -> Any:
    return scene(f'<{kind} type="{plugin}">{value}</{kind}>')["_arg_0"][name]


def test_root_of_another_kind_is_that_object() -> None:
    material = load_string('<bsdf type="diffuse" version="3.0.0" id="m"/>')
    assert material.plugin_name == "diffuse" and material.name == "m"


def test_nameless_children_are_numbered_per_parent() -> None:
    root = scene('<shape type="sphere"/><shape type="sphere" name="b"/>'
                 '<shape type="sphere"><bsdf type="diffuse"/></shape>')
    assert list(root.children) == ["_arg_0", "b", "_arg_1"]
    assert root["_arg_1"].props.keys() == ["_arg_0"]


def test_objects_bind_by_kind_whatever_their_name() -> None:
    made = shape('<bsdf type="diffuse" name="odd"/><emitter type="area"/><medium type="homogeneous" name="exterior"/>')
    assert made["bsdf"].plugin_name == "diffuse"
    assert made["emitter"].plugin_name == "area"
    assert made["exterior"].plugin_name == "homogeneous" and made["interior"] is None


def test_references_point_forward_and_share_the_object() -> None:
    root = scene('<shape type="sphere"><ref id="m"/></shape><shape type="rectangle"><ref name="bsdf" id="m"/></shape>'
                 '<bsdf type="diffuse" id="m"/>')
    shared = root["_arg_2"]
    assert root["_arg_0"]["bsdf"] is shared and root["_arg_1"]["bsdf"] is shared


def test_alias_gives_a_second_id() -> None:
    root = scene('<bsdf type="diffuse" id="m"/><alias id="m" as="n"/><shape type="sphere"><ref id="n"/></shape>')
    assert root["_arg_1"]["bsdf"] is root["_arg_0"]


def test_ids_may_hold_dots_and_blanks() -> None:
    assert scene('<bsdf type="diffuse" id="Mat.001"/><shape type="sphere"><ref id="Mat.001"/></shape>')


@pytest.mark.parametrize(("text", "value"), [("2", 2.0), (" 2.5 ", 2.5), ("1e-3", 1e-3), (".5", 0.5), ("+3.", 3.0)])
def test_float(text: str, value: float) -> None:
    assert shape(f'<float name="radius" value="{text}"/>')["radius"] == value


def test_integer_promotes_to_float_but_not_back() -> None:
    radius = shape('<integer name="radius" value="2"/>')["radius"]
    assert radius == 2.0 and isinstance(radius, float)
    with pytest.raises(SceneError, match=r'"max_depth" has the wrong type \(expected integer, got float\)'):
        scene('<integrator type="path"><float name="max_depth" value="4"/></integrator>')


def test_integer_written_with_a_point_warns() -> None:
    with pytest.warns(SceneWarning, match='line 1.*"4.0"'):
        made = scene('<integrator type="path"><integer name="max_depth" value=" 4.0 "/></integrator>')
    assert made["_arg_0"]["max_depth"] == 4


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("TRUE", True)])
def test_boolean(text: str, value: bool) -> None:
    made = scene(f'<integrator type="path"><boolean name="hide_emitters" value="{text}"/></integrator>')
    assert made["_arg_0"]["hide_emitters"] is value


@pytest.mark.parametrize(("text", "value"), [
    ('value="1,2,3"', [1, 2, 3]), ('value="1 2, 3"', [1, 2, 3]), ('value="4"', [4, 4, 4]),
    ('x="1" y="2" z="3"', [1, 2, 3]),
])
def test_point(text: str, value: list[float]) -> None:
    assert shape(f'<point name="center" {text}/>')["center"].tolist() == value


def test_colours_are_linear_and_hex_is_encoded() -> None:
    for text, value in (("0.25", [0.25] * 3), ("0.1, 0.2 0.3", [0.1, 0.2, 0.3]), ("#ff8000", [1.0, 0.21586, 0.0])):
        made = slot("bsdf", "diffuse", "reflectance", f'<rgb name="reflectance" value="{text}"/>')
        assert made.plugin_name == "srgb" and np.allclose(made["color"], value, atol=1e-5)
    made = slot("bsdf", "diffuse", "reflectance", '<srgb name="reflectance" value="0.5"/>')
    assert np.allclose(made["color"], 0.21404, atol=1e-5)


def test_texture_slots_follow_their_kind() -> None:
    # scene_format.md 2.4: number, colour and spectrum in reflectance, emission and unbounded slots.
    number, colour = '<float name="{}" value="1.5"/>', '<rgb name="{}" value="2 0 1"/>'
    flat, pairs = '<spectrum name="{}" value="0.5"/>', '<spectrum name="{}" value="400:.2, 500:.4, 700:.9"/>'

    def made(plugin: str, name: str, text: str) -> Any:
        kind = "emitter" if plugin == "constant" else "bsdf"
        return slot(kind, plugin, name, text.format(name))

    assert made("diffuse", "reflectance", number)["value"] == 1.5
    assert made("conductor", "eta", number)["value"] == 1.5
    assert made("constant", "radiance", number)["color"].tolist() == [1.5] * 3
    assert made("constant", "radiance", colour)["color"].tolist() == [2, 0, 1]
    assert made("constant", "radiance", colour)["unbounded"] is True
    assert made("conductor", "eta", colour)["color"].tolist() == [2, 0, 1]
    with pytest.raises(SceneError, match="Invalid RGB reflectance value"):
        made("diffuse", "reflectance", colour)
    assert made("diffuse", "reflectance", flat)["value"] == 0.5
    assert np.allclose(made("constant", "radiance", flat)["color"], 0.5 * np.array([1.2048, 0.9483, 0.9089]), atol=1e-4)
    assert np.allclose(made("diffuse", "reflectance", pairs)["color"], [0.753834, 0.505378, 0.277034], atol=1e-5)
    assert np.allclose(made("constant", "radiance", pairs)["color"], [0.886727, 0.481519, 0.245200], atol=1e-5)
    assert np.allclose(made("conductor", "eta", pairs)["color"], [0.753834, 0.505378, 0.277034], atol=1e-5)
    texture = '<texture name="reflectance" type="checkerboard"/>'
    assert made("diffuse", "reflectance", texture).plugin_name == "checkerboard"


def test_saturated_spectra_are_clamped() -> None:
    text = '<spectrum name="{}" value="500:2, 600:4"/>'
    assert slot("bsdf", "diffuse", "reflectance", text.format("reflectance"))["color"].tolist() == [1, 1, 0]
    emitted = slot("emitter", "constant", "radiance", text.format("radiance"))["color"]
    assert np.allclose(emitted, [1.414621, 2.854988, 0.0], atol=1e-5)


def test_defaults_of_slots_become_objects() -> None:
    assert slot("bsdf", "diffuse", "reflectance", "")["value"] == 0.5
    assert slot("emitter", "area", "radiance", "")["color"].tolist() == [1, 1, 1]


def test_volume_slots() -> None:
    made = slot("medium", "homogeneous", "albedo", '<rgb name="albedo" value=".1 .2 .3"/>')
    assert made.plugin_name == "constvolume" and np.allclose(made["value"]["color"], [0.1, 0.2, 0.3])
    assert slot("medium", "homogeneous", "sigma_t", "")["value"]["value"] == 1.0


def test_spectrum_from_a_file(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a.spd").write_text("# a comment\n400 0.2\n500 0.4\n700 0.9\n")
    path = write('<bsdf type="diffuse"><spectrum name="reflectance" filename="a.spd"/></bsdf>')
    assert np.allclose(load_file(path)["_arg_0"]["reflectance"]["color"], [0.753834, 0.505378, 0.277034], atol=1e-5)


def test_spectrum_element_with_a_type_is_a_texture() -> None:
    text = '<spectrum type="uniform" name="reflectance"><float name="value" value=".3"/></spectrum>'
    made = slot("bsdf", "diffuse", "reflectance", text)
    assert made.plugin_name == "uniform" and made["value"] == 0.3


def test_index_of_refraction_is_a_name_or_a_float() -> None:
    assert slot("bsdf", "dielectric", "int_ior", '<string name="int_ior" value="water"/>') == "water"
    assert slot("bsdf", "dielectric", "int_ior", '<float name="int_ior" value="1.5"/>') == 1.5
    with pytest.raises(SceneError, match="expected string, got integer"):
        slot("bsdf", "dielectric", "int_ior", '<integer name="int_ior" value="1"/>')


def transform(body: str) -> Any:
    return shape(f'<transform name="to_world">{body}</transform>')["to_world"].matrix


def test_commands_multiply_from_the_left() -> None:
    both = transform('<scale value="2"/><translate x="1"/>')
    assert both[0].tolist() == [2, 0, 0, 1]
    assert transform('<translate x="1"/><scale value="2"/>')[0].tolist() == [2, 0, 0, 2]
    assert np.allclose(np.diag(transform('<scale y="3"/>')), [1, 3, 1, 1])


def test_rotation_and_matrices() -> None:
    assert np.allclose(transform('<rotate y="2" angle="90"/>')[:3, :3], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    assert transform('<matrix value="1 2 3 4 5 6 7 8 9"/>')[1].tolist() == [4, 5, 6, 0]
    assert transform('<matrix value="1,0,0,7 0,1,0,8 0,0,1,9 0,0,0,1"/>')[:3, 3].tolist() == [7, 8, 9]


def test_lookat() -> None:
    frame = transform('<lookat origin="0,0,4" target="0,0,0" up="0,1,0"/>')
    assert np.allclose(frame[:3, :3], np.diag([-1, 1, -1])) and frame[:3, 3].tolist() == [0, 0, 4]
    for up in ('up="0 0 0"', "", 'up="0 0 2"'):
        linear = transform(f'<lookat origin="0,0,4" target="0,0,0" {up}/>')[:3, :3]
        assert np.allclose(linear.T @ linear, np.eye(3)) and np.linalg.det(linear) > 0.99


def test_substitution_prefers_the_longest_name_and_knows_an_escape() -> None:
    root = scene(r'<default name="a" value="1"/><default name="ab" value="sphere"/>'
                 r'<shape type="$ab" id="x$a\$a"><float name="radius" value="$a$a"/></shape>')
    assert root["_arg_0"].name == "x1$a" and root["_arg_0"]["radius"] == 11


def test_given_parameters_win_over_defaults_and_must_be_used() -> None:
    body = '<default name="r" value="1"/><shape type="sphere"><float name="radius" value="$r"/></shape>'
    assert scene(body, r=3)["_arg_0"]["radius"] == 3.0
    assert scene('<default name="q" value="1"/>', q=2) is not None
    with pytest.raises(SceneError, match=r'Found unused parameters: rr.*did you mean "r"'):
        scene(body, rr=3)
    with pytest.raises(SceneError, match=r"undefined parameter: \$r"):
        scene('<shape type="sphere"><float name="radius" value="$r"/></shape><default name="r" value="1"/>')


def test_includes_share_ids_defaults_and_dissolve_scenes(write: Write) -> None:
    write('<default name="r" value="7"/><bsdf type="diffuse" id="m"/>', "parts/inner.xml")
    write('<shape type="sphere" version="3.0.0"><float name="radius" value="$r"/><ref id="m"/></shape>', "ball.xml")
    root = load_file(write('<include filename="parts/inner.xml"/><include filename="ball.xml" name="ball"/>'))
    assert root["ball"]["radius"] == 7.0 and root["ball"]["bsdf"] is root["_arg_0"]


def test_include_loop_names_both_files(write: Write) -> None:
    write('<include filename="a.xml"/>', "b.xml")
    path = write('\n<include filename="b.xml"/>', "a.xml")
    loop = r"include loop: \S*a\.xml includes \S*b\.xml includes \S*a\.xml"
    with pytest.raises(SceneError, match=r"b\.xml \(line 2.*" + loop):
        load_file(path)


def test_duplicate_id_across_an_include_names_both_places(write: Write) -> None:
    write('<bsdf type="diffuse" id="m"/>', "inner.xml")
    path = write('<bsdf type="diffuse" id="m"/>\n<include filename="inner.xml"/>')
    with pytest.raises(SceneError, match=r'inner\.xml \(line 2.*duplicate ID: "m".*scene\.xml \(line 2'):
        load_file(path)


def test_files_are_found_beside_the_scene_on_paths_and_with_backslashes(write: Write, tmp_path: Path) -> None:
    for folder in ("meshes", "other", "third"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.obj").write_text("")
    mesh = '<shape type="obj"><string name="filename" value="{}"/></shape>'
    root = load_file(write('<path value="other"/>' + mesh.format(r"meshes\meshes.obj") + mesh.format("other.obj")))
    assert root["_arg_0"].path.samefile(tmp_path / "meshes" / "meshes.obj")
    assert root["_arg_1"].path.samefile(tmp_path / "other" / "other.obj")
    path = write(mesh.format("third.obj"))
    with pytest.raises(MissingFileError, match=r'scene\.xml \(line 2.*"third\.obj" not found; searched in'):
        load_file(path)
    with search_paths(tmp_path / "third"):
        assert load_file(path)["_arg_0"].path.is_file()


def test_missing_mesh_is_named_with_its_folder(write: Write) -> None:
    with pytest.raises(MissingFileError, match=r'line 3.*"meshes/none\.obj" not found'):
        load_file(write('\n<shape type="obj"><string name="filename" value="meshes/none.obj"/></shape>'))


def test_unknown_properties_list_the_known_ones(write: Write) -> None:
    with pytest.raises(SceneError) as caught:
        load_file(write('<shape type="sphere"><float name="radios" value="1"/></shape>'))
    text = str(caught.value)
    assert 'Found 1 unreferenced property in shape plugin of type "sphere":\n  - float "radios": 1' in text
    assert "scene.xml (line 2, col 22)" in text and 'did you mean "radius"?' in text and "center" in text


def test_ignored_properties_are_accepted() -> None:
    film = '<film type="hdrfilm"><boolean name="banner" value="false"/></film>'
    assert scene(film)["_arg_0"]["width"] == 768


def test_failures_inside_plugins_name_place_and_plugin() -> None:
    with pytest.raises(SceneError, match=r'At string \(line 1, col 24\): failed to instantiate shape plugin of type '
                       r'"broken": RuntimeError: boom'):
        scene('<shape type="broken"/>')


def test_objects_that_expand_are_replaced() -> None:
    root = scene('<shape type="group" name="g"><shape type="sphere"/><shape type="rectangle"/></shape>')
    assert [made.plugin_name for made in root.children.values()] == ["sphere", "rectangle"]
    parts = load_string('<shape version="3.0.0" type="group"><shape type="sphere"/><shape type="sphere"/></shape>')
    assert len(parts) == 2


def test_nested_texture_binds_by_kind_where_asked() -> None:
    root = scene('<bsdf type="bumpmap"><texture type="checkerboard" name="free"/><bsdf type="diffuse"/></bsdf>')
    assert root["_arg_0"]["nested_texture"].plugin_name == "checkerboard"


def test_user_plugins_without_a_table_must_query_what_they_accept() -> None:
    class Tinted:
        def __init__(self, props: Properties) -> None:
            self.tint = props["tint"]
            self.albedo = props.get_texture("albedo", 0.25)
            self.depth = props.get("depth", 7)

    registry.register_bsdf("tinted", lambda props: Tinted(props))
    body = '<shape type="sphere"><bsdf type="tinted"><rgb name="tint" value="1 2 3"/>{}</bsdf></shape>'
    made = scene(body.format(""))["_arg_0"]["bsdf"]
    assert made.tint.tolist() == [1, 2, 3] and made.albedo["value"] == 0.25 and made.depth == 7
    with pytest.raises(SceneError, match=r'unreferenced property in bsdf plugin of type "tinted":\n  - float "tnt": 1'):
        scene(body.format('<float name="tnt" value="1"/>'))


def test_user_classes_that_extend_a_built_in_one_get_its_table() -> None:
    class Mine(registry.lookup("integrator", "path")):  # type: ignore[misc]
        def __init__(self, props: Properties) -> None:
            props.adopt(type(self))
            super().__init__(props)
            self.tint = props["tint"]

    registry.register_integrator("mine", lambda props: Mine(props))
    body = '<integrator type="mine"><integer name="max_depth" value="3"/>{}</integrator>'
    made = scene(body.format('<float name="tint" value="2"/>'))["_arg_0"]
    assert made["max_depth"] == 3 and made["rr_depth"] == 5 and made.tint == 2.0
    with pytest.raises(SceneError, match='unreferenced property in integrator plugin of type "mine"'):
        scene(body.format('<float name="tint" value="2"/><float name="other" value="2"/>'))


def test_folders_of_the_thread(write: Write, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "mesh.obj").write_text("")
    path = write('<shape type="obj"><string name="filename" value="mesh.obj"/></shape>')
    file_resolver().append(tmp_path / "far")
    try:
        assert load_file(path)["_arg_0"].path == tmp_path / "far" / "mesh.obj"
        assert file_resolver().resolve("mesh.obj") == tmp_path / "far" / "mesh.obj"
    finally:
        file_resolver().clear()
    with pytest.raises(MissingFileError):
        load_file(path)


def test_parsing_alone_needs_no_plugin() -> None:
    document = parse_string('<scene version="3.0.0"><shape type="never_written"/></scene>')
    assert document.nodes[1].plugin == "never_written"


def test_strict_files_load_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scene('<shape type="sphere"><bsdf type="diffuse"/></shape>')


def test_many_nested_references_need_no_recursion() -> None:
    chain = "".join(f'<bsdf type="twosided" id="b{i}"><ref id="b{i + 1}"/></bsdf>' for i in range(3000))
    assert scene(chain + '<bsdf type="diffuse" id="b3000"/>')


def test_equal_energy_is_not_white() -> None:
    assert np.allclose(spectra.equal_energy_rgb(), [1.2048, 0.9483, 0.9089], atol=1e-4)
