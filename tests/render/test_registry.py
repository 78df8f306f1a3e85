"""The list of plugins: declaring, finding, refusing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from luxgrad.jit.errors import SceneError
from luxgrad.render import registry
from luxgrad.render.properties import Properties
from luxgrad.render.registry import Parameter, register


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test an empty registry that looks into no folder."""
    for kind in registry.KINDS:
        registry.known(kind)  # plugins that are first imported while the list is replaced would be lost
    monkeypatch.setattr(registry, "_entries", {})
    monkeypatch.setattr(registry, "_walked", set(registry.KINDS))


def plain(name: str, parameters: tuple[Parameter, ...] = ()) -> type:
    return type(name, (), {"parameters": parameters, "__init__": lambda self, props: None})


def test_register_and_look_up() -> None:
    made = register("bsdf", "diffuse")(plain("Diffuse"))
    assert registry.lookup("bsdf", "diffuse") is made
    assert (made.plugin_kind, made.plugin_name) == ("bsdf", "diffuse")  # type: ignore[attr-defined]
    assert registry.known("bsdf") == ["diffuse"] and registry.find_kinds("diffuse") == ["bsdf"]


def test_spectra_are_textures() -> None:
    made = register("spectrum", "d65")(plain("D65"))
    assert registry.lookup("texture", "d65") is made and registry.lookup("spectrum", "d65") is made


def test_duplicates_are_refused_but_a_users_plugin_may_be_replaced() -> None:
    register("bsdf", "diffuse")(plain("Diffuse"))
    with pytest.raises(SceneError, match='a bsdf plugin named "diffuse" exists already'):
        register("bsdf", "diffuse")(plain("Other"))
    with pytest.raises(SceneError, match="exists already"):
        registry.register_bsdf("diffuse", lambda props: None)
    registry.register_bsdf("mine", lambda props: 1)
    registry.register_bsdf("mine", lambda props: 2)
    assert registry.lookup("bsdf", "mine")(None) == 2


def test_unknown_names_list_the_known_and_the_nearest() -> None:
    register("bsdf", "diffuse")(plain("Diffuse"))
    register("shape", "sphere")(plain("Sphere"))
    with pytest.raises(SceneError, match='unknown bsdf plugin "difuse"; did you mean "diffuse".*Known.*: diff'):
        registry.lookup("bsdf", "difuse")
    with pytest.raises(SceneError, match='"sphere" is a plugin of kind shape'):
        registry.lookup("bsdf", "sphere")
    with pytest.raises(SceneError, match='unknown kind of plugin "brdf"'):
        registry.lookup("brdf", "diffuse")


def test_parameters_know_their_kind() -> None:
    with pytest.raises(ValueError, match='unknown kind "flaot"'):
        Parameter("a", "flaot")
    assert Parameter("a", "float").required and not Parameter("a", "float", None).required
    assert Parameter("a", "bsdf").binds_by_type and not Parameter("a", "medium").binds_by_type
    assert Parameter("a", "texture", by_type=True).binds_by_type and not Parameter("a", "shape", many=True).required


def props(values: dict[str, object], *parameters: Parameter) -> Properties:
    register("shape", "thing")(plain("Thing", parameters))
    return Properties(values, entry=registry.entry("shape", "thing"), location="here")


def test_defaults_come_from_the_table_unless_given() -> None:
    found = props({}, Parameter("a", "float", 2), Parameter("b", "int", None), Parameter("c", "string"))
    assert found["a"] == 2.0 and found["b"] is None and "a" not in found
    assert found.get("a", 5) == 5.0 and found.get("a") == 2.0 and found.get("c") is None
    with pytest.raises(SceneError, match=r'the property "c" is missing \(here\)'):
        found["c"]


def test_wrong_types_say_what_was_expected_and_where() -> None:
    found = props({"n": 1.5}, Parameter("n", "int"))
    with pytest.raises(SceneError, match=r'"n" has the wrong type \(expected integer, got float\) at here'):
        found["n"]


def test_properties_without_a_table_count_queries() -> None:
    found = Properties({"a": 1, "b": 2.0})
    assert found["a"] == 1 and found.unqueried() == ["b"]
    assert found.get("c", 7) == 7 and found.has_property("b") and found.keys() == ["a", "b"]
    found.mark_queried("b")
    assert found.unqueried() == []
    found["d"] = "x"
    del found["a"]
    assert found.keys() == ["b", "d"] and len(found) == 2


def test_every_plugin_loads_and_describes_itself() -> None:
    # In a process of its own: plugins that are imported here would register in this test's empty registry only.
    code = (
        "from luxgrad.render import registry\n"
        "for kind in registry.KINDS:\n"
        "    for name in registry.known(kind):\n"
        "        entry = registry.entry(kind, name)\n"
        "        assert entry.factory.__doc__, (kind, name, 'has no docstring')\n"
        "        names = [p.name for p in entry.parameters or ()]\n"
        "        assert len(set(names)) == len(names), (kind, name, 'lists a parameter twice')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
