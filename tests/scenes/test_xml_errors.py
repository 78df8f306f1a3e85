"""Broken files: one clear error each, with file and line, never an error from inside the loader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from luxgrad.jit.errors import MissingFileError, SceneError
from luxgrad.scenes.loader import load_file, load_string

# What stands on line 3 of the file, and what the message must say.
BODIES = [
    ("<foo/>", "encountered an unsupported XML element: <foo>"),
    ('<shape type="sphere" colour="1"/>', 'unexpected attribute "colour" in element <shape>'),
    ("<shape/>", 'missing required attribute "type" in <shape>'),
    ('<shape type="sphre"/>', 'unknown shape plugin "sphre"; did you mean "sphere"?'),
    ('<bsdf type="sphere"/>', '"sphere" is a plugin of kind shape'),
    ('<shape type="sphere"><float name="radius" value="abc"/></shape>', 'could not parse floating point value "abc"'),
    ('<shape type="sphere"><float name="radius" value="1 2"/></shape>', 'could not parse floating point value "1 2"'),
    ('<shape type="sphere"><float name="radius" value="nan"/></shape>', 'could not parse floating point value "nan"'),
    ('<shape type="sphere"><float name="radius"/></shape>', 'missing required attribute "value" in <float>'),
    ('<shape type="sphere"><float value="1"/></shape>', 'missing required attribute "name" in <float>'),
    ('<shape type="sphere"><float name="radius" value="1"/><float name="radius" value="2"/></shape>',
     "given before at"),
    ('<integrator type="path"><integer name="max_depth" value="4.5"/></integrator>', 'parse integer value "4.5"'),
    ('<integrator type="path"><integer name="max_depth" value="99999999999999999999"/></integrator>', "64 bits"),
    ('<integrator type="path"><boolean name="hide_emitters" value="yes"/></integrator>', 'parse boolean value "yes"'),
    ('<integrator type="path"><string name="max_depth" value="4"/></integrator>', "expected integer, got string"),
    ('<shape type="sphere"><point name="center" value="1,2"/></shape>', "must have exactly 1 or 3 elements"),
    ('<shape type="sphere"><point name="center" x="1"/></shape>', 'missing required attribute "y" in <point>'),
    ('<shape type="sphere"><point name="center" x="1" value="1"/></shape>', 'Cannot mix "value" and "x"/"y"/"z"'),
    ('<bsdf type="diffuse"><rgb name="reflectance" value="1 2"/></bsdf>', 'could not parse RGB value "1 2"'),
    ('<bsdf type="diffuse"><rgb name="reflectance" value="#abc"/></bsdf>', 'could not parse RGB value "#abc"'),
    ('<bsdf type="diffuse"><rgb name="reflectance" value="1.2"/></bsdf>', "must be in the range [0, 1]"),
    ('<bsdf type="diffuse"><spectrum name="reflectance"/></bsdf>', 'requires either "value" or "filename"'),
    ('<bsdf type="diffuse"><spectrum name="reflectance" value="5:1,4:2"/></bsdf>', "specified in increasing order"),
    ('<bsdf type="diffuse"><spectrum name="reflectance" value="500 1"/></bsdf>', "expected wavelength:value pairs"),
    ('<bsdf type="diffuse"><vector name="reflectance" value="1"/></bsdf>',
     "expected texture/float/color/spectrum, got vector"),
    ('<film type="hdrfilm"><string name="pixel_format" value="rbg"/></film>', 'did you mean "rgb"?'),
    ("<translate x='1'/>", "can only appear inside a <transform> tag"),
    ("<transform name='t'><rotate angle='3'/></transform>", "rotation axis cannot be zero"),
    ("<transform name='t'><rotate x='1'/></transform>", 'missing required attribute "angle" in <rotate>'),
    ("<transform name='t'><matrix value='1 2 3'/></transform>", "matrix must have 9 or 16 values, got 3"),
    ("<transform name='t'><lookAt origin='1 2 3'/></transform>", "unexpected <lookAt> element inside <transform>"),
    ("<transform name='t'><lookat origin='1 2 3'/></transform>", 'missing required attribute "target" in <lookat>'),
    ("<transform name='t'><lookat origin='1 2 3' target='1 2 3'/></transform>", "are the same point"),
    ("<transform name='t'><scale x='q'/></transform>", 'could not parse floating point value "q"'),
    ('<shape type="sphere"><ref id="nomat"/></shape>', 'unresolved reference to "nomat"'),
    ('<shape type="sphere" id="a"/><shape type="sphere" id="a"/>', 'duplicate ID: "a" (previous was at'),
    ('<alias id="q" as="r"/>', 'alias source ID "q" not found'),
    ('<bsdf type="diffuse" id="q"/><alias id="q" as="q"/>', 'alias destination ID "q" already exists'),
    ('<path value="/nowhere/at/all"/>', 'folder "/nowhere/at/all" not found'),
    ('<shape type="sphere"><path value="."/></shape>', "path can only be child of root"),
    ('<include filename="parts/none.xml"/>', 'included file "parts/none.xml" not found'),
    ('<default name="q"/>', 'missing required attribute "value" in <default>'),
    ('<shape type="sphere"><float name="radius" value="$r"/></shape>', "undefined parameter: $r"),
    ('<bsdf type="twosided" id="a"><ref id="b"/></bsdf><bsdf type="twosided" id="b"><ref id="a"/></bsdf>',
     "circular reference detected: a -> b -> a"),
    ('<shape type="sphere"><bsdf type="diffuse"/><bsdf type="diffuse"/></shape>', "only a single bsdf can be given"),
    ('<shape type="sphere"><integrator type="path"/></shape>', "Found 1 unreferenced property in shape plugin"),
    ('<bsdf type="diffuse"><ref name="reflectance" id="s"/></bsdf><shape type="sphere" id="s"/>', "got shape"),
    ('<shape type="obj"/>', 'the required property "filename"'),
    ("hello", 'unexpected text "hello" inside <scene>'),
    ('<scene version="3.0.0"/>', 'unexpected attribute "version"|<scene> can only be the root'),
    ('<shape type="sphere"><float name="radius" value="1"><float name="a" value="1"/></float></shape>',
     "unexpected <float> element inside <float>"),
    ("</shape>", "XML parsing failed: mismatched tag"),
    ("<shape type=sphere/>", "XML parsing failed: not well-formed"),
    ("&bomb;", "XML parsing failed: undefined entity"),
]


@pytest.mark.parametrize(("body", "message"), BODIES, ids=[message[:40] for _, message in BODIES])
def test_broken_body(write: Callable[..., Path], body: str, message: str) -> None:
    path = write("\n" + body)
    with pytest.raises(SceneError) as caught:
        load_file(path)
    text = str(caught.value)
    assert any(part in text for part in message.split("|")), text
    assert str(path) in text and re.search(r"\(line 3, col \d+\)", text), text


ROOTS = [
    ("<scene></scene>", 'missing required attribute "version"'),
    ('<scene version="abc"></scene>', 'Invalid version number: "abc"'),
    ('<scene version="3.0"></scene>', 'Invalid version number: "3.0"'),
    ('<float version="3.0.0" name="x" value="1"/>', "the root element must be an object"),
    ('<picture version="3.0.0"/>', "unsupported XML element: <picture>"),
    ('<scene version="3.0.0">', "XML parsing failed: no element found"),
    ("", "XML parsing failed: no element found"),
    ('<?xml version="1.0" encoding="utf-99"?><scene version="3.0.0"/>', "XML parsing failed: unknown encoding"),
    ('<!DOCTYPE scene [<!ENTITY a "x">]><scene version="3.0.0"/>', "entity declarations"),
    ('<!DOCTYPE scene [<!ENTITY a SYSTEM "/etc/passwd">]><scene version="3.0.0">&a;</scene>', "entity declarations"),
    ('<scene version="3.0.0">' + '<shape type="group">' * 200 + "</shape>" * 200 + "</scene>", "nested more than 100"),
]


@pytest.mark.parametrize(("text", "message"), ROOTS, ids=[message for _, message in ROOTS])
def test_broken_root(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "root.xml"
    path.write_text(text)
    with pytest.raises(SceneError, match=re.escape(message)) as caught:
        load_file(path)
    assert str(path) in str(caught.value)
    if "encoding" not in text:  # text that is decoded already needs none
        with pytest.raises(SceneError, match=re.escape(message)):
            load_string(text)


def test_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scene.xml"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(SceneError, match="XML parsing failed"):
        load_file(path)


def test_missing_scene_file() -> None:
    with pytest.raises(MissingFileError, match=r'scene file "no/such.xml" not found'):
        load_file("no/such.xml")


def test_includes_have_a_depth(write: Callable[..., Path]) -> None:
    for i in range(20):
        write(f'<include filename="f{i + 1}.xml"/>', f"f{i}.xml")
    write("", "f20.xml")
    with pytest.raises(SceneError, match="more than 15 deep"):
        load_file(write('<include filename="f0.xml"/>'))
    assert load_file(write('<include filename="f8.xml"/>'))
